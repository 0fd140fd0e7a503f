import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from protege.services.mail_status import mail_status
from tests.factories import InboundMailFactory, MessageFactory, OutboundFactory, RunFactory

pytestmark = pytest.mark.django_db

AN_HOUR_AGO = timezone.now() - timedelta(hours=1)


def test_counts_by_state_and_what_waits_longest() -> None:
    InboundMailFactory(received_at=AN_HOUR_AGO)
    InboundMailFactory(status="quarantined", reason="too_old")
    RunFactory(status="queued", created_at=AN_HOUR_AGO)
    RunFactory(status="failed")
    OutboundFactory(status="failed")
    MessageFactory()
    status = mail_status()
    assert status["inbound"] == {"quarantined": 1, "received": 1}
    assert status["runs"] == {"failed": 1, "queued": 1}
    assert status["outbound"] == {"failed": 1}
    assert status["oldest_seconds"]["received mail"] >= 3600
    assert status["oldest_seconds"]["queued run"] >= 3600
    assert status["oldest_seconds"]["queued send"] is None


def test_queries_do_not_grow(django_assert_num_queries: Any) -> None:
    for _ in range(10):
        InboundMailFactory()
    with django_assert_num_queries(6):
        mail_status()


@pytest.mark.parametrize("as_json", [True, False])
def test_it_is_printed(as_json: bool) -> None:
    InboundMailFactory()
    out = io.StringIO()
    call_command("mail_status", json=as_json, stdout=out)
    if as_json:
        assert json.loads(out.getvalue())["inbound"] == {"received": 1}
    else:
        assert "inbound: received: 1" in out.getvalue()
        assert "oldest queued send: nothing waits" in out.getvalue()
