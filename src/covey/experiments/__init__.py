"""The paper's statements as experiments: one file each, with settings, run, plot and claims."""
