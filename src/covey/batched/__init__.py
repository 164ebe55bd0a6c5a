"""Many paths of one design at once: bootstrap samples, folds, responses."""

from covey.batched.group_paths import group_paths

__all__ = ["group_paths"]
