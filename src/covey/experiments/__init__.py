"""The paper's statements as experiments: settings, run, plot, claims."""
