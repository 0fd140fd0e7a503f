from collections.abc import Iterator

import pytest

from tests.inference.server import SECRET, Provider


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("TEST_KEY", SECRET)
    with Provider() as server:
        yield server
