"""Groups: which columns belong together."""

from covey.groups.partition import Groups, GroupsLike

__all__ = ["Groups", "GroupsLike"]
