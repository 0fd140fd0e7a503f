"""The command that mail servers pipe into; its other behaviour is tested with the commands."""

import io
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.core.management import call_command

from tests.doors.cases import ANA, HELPER, DoorContract

pytestmark = pytest.mark.django_db


class TestPipe(DoorContract):
    source = "pipe"

    @pytest.fixture(autouse=True)
    def standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def deliver(
        self, raw: bytes, *, to: Sequence[str] = (HELPER,), sender: str = ANA, tenant: str | None = None
    ) -> None:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        call_command("receive_mail", "-", to=list(to), sender=sender, tenant=tenant, stdout=io.StringIO())

    def refusal(self) -> AbstractContextManager[Any]:
        return pytest.raises(SystemExit, match="67")
