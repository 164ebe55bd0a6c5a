"""covey: group-sparse regression without a penalty."""

from covey.engine import group_path
from covey.groups import Groups
from covey.path import Path

__all__ = ["Groups", "Path", "group_path"]
__version__ = "0.1.0"
