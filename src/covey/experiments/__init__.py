"""The paper's statements as experiments: one file each, with settings, run, plot and claims."""

from covey.experiments import phase, rates

__all__ = ["phase", "rates"]
