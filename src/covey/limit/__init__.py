"""The path in the limit of small starts, with the refits, backward elimination and ridges built on it."""

from covey.limit.public import limit_path

__all__ = ["limit_path"]
