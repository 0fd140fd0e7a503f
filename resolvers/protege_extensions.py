"""The built-in resolvers come in by the same door as those of guests."""

from resolvers import builtin

__all__ = ["builtin"]
