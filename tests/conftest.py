"""What holds for every test: no network beyond this machine, no files beyond the test's own folder."""

import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from pytest_django import Settings


class NetworkBlockedError(RuntimeError):
    """A test tried to leave this machine. No `OSError`: what handles those must not swallow it."""


def is_loopback(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


def _guarded(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX and not is_loopback(address[0]):
            raise NetworkBlockedError(f"The tests do not reach {address[0]}: only loopback is open.")
        return original(self, address)

    return connect


def _guarded_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_loopback(host):
            raise NetworkBlockedError(f"The tests do not look up {host!r}: only loopback is open.")
        return original(host, *args, **kwargs)

    return getaddrinfo


def pytest_configure() -> None:
    """Block before anything is collected, so that imports are held to it as well."""
    socket.socket.connect = _guarded(socket.socket.connect)  # type: ignore[method-assign]
    socket.socket.connect_ex = _guarded(socket.socket.connect_ex)  # type: ignore[method-assign]
    socket.getaddrinfo = _guarded_lookup(socket.getaddrinfo)


@pytest.fixture(autouse=True)
def own_world(settings: Settings, tmp_path: Path) -> None:
    """Each test has its own folder of files and an empty cache; pytest-django empties the outbox."""
    settings.PROTEGE = {**settings.PROTEGE, "FILES_ROOT": tmp_path / "files"}
    cache.clear()
