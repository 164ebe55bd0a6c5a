"""The path in the limit of small starts, and what is made of it: events, refits, elimination, ridges."""

from covey.limit.public import limit_path

__all__ = ["limit_path"]
