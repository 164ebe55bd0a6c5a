"""Groups: which columns belong together."""

from covey.groups.partition import Groups

__all__ = ["Groups"]
