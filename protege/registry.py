"""One kind of registry for all that code offers to the admin: resolvers, sources, models, tools."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from protege.exceptions import RegistryError

T = TypeVar("T")


class Registry(Generic[T]):
    """Things by name, in the order of registration.

    `what` names one entry in error messages; `check` raises or returns a complaint for anything that is no such entry.
    """

    def __init__(self, what: str, *, check: Callable[[object], str | None]) -> None:
        self.what = what
        self._check = check
        self._entries: dict[str, T] = {}

    def register(self, name: str, entry: T) -> T:
        """Add `entry` under `name`; a wrong type, an empty or a taken name is a `RegistryError`."""
        complaint = self._check(entry)
        if complaint:
            raise RegistryError(f"{entry!r} cannot be registered as a {self.what}: {complaint}")
        if not isinstance(name, str) or not name.strip():
            raise RegistryError(f"{entry!r} has no name: give every {self.what} a short stable `name`.")
        taken = self._entries.get(name)
        if taken is not None and not _same_definition(taken, entry):
            raise RegistryError(f"The {self.what} name {name!r} is taken by {taken!r}. Choose another name.")
        self._entries[name] = entry
        return entry

    def get(self, name: str) -> T | None:
        """The entry under `name`, or None."""
        return self._entries.get(name)

    def names(self) -> list[str]:
        return list(self._entries)

    def items(self) -> list[tuple[str, T]]:
        return list(self._entries.items())

    def choices(self) -> list[tuple[str, str]]:
        """`(name, label)` pairs for a form; the label is the entry's `label`, else its name."""
        return [(name, str(getattr(entry, "label", "") or name)) for name, entry in self._entries.items()]

    @contextmanager
    def temporarily(self, name: str, entry: T) -> Iterator[T]:
        """Register `entry` for the length of a `with` block, for tests."""
        self.register(name, entry)
        try:
            yield entry
        finally:
            del self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _same_definition(one: object, other: object) -> bool:
    """True when a module was merely imported twice (an autoreload), which is no clash."""
    return one is other or (
        isinstance(one, type)
        and isinstance(other, type)
        and (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)
        and "<locals>" not in one.__qualname__
    )
