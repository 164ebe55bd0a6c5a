"""covey: group-sparse regression without a penalty."""

from covey.groups import Groups

__all__ = ["Groups"]
__version__ = "0.1.0"
