from datetime import datetime
from typing import Any

import pytest

from protege.context import Context
from protege.principals import Principal
from tests.factories import MessageFactory, PersonaFactory


def test_all_but_the_persona_have_a_default() -> None:
    context = Context(persona=PersonaFactory.build())
    assert context.message is None
    assert context.responsibility is None
    assert context.idempotency_key is None
    assert context.now.tzinfo is not None
    assert context.config.record_limit == 50


def test_it_is_frozen() -> None:
    context = Context(persona=PersonaFactory.build())
    with pytest.raises(AttributeError):
        context.message = None  # type: ignore[misc]


def test_a_naive_clock_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        Context(persona=PersonaFactory.build(), now=datetime(2026, 3, 2))


@pytest.mark.django_db
def test_a_reply_acts_for_the_sender() -> None:
    mail = MessageFactory(from_address="ana@client.example")
    principal = Context(persona=mail.persona, message=mail).principal
    assert principal == Principal(tenant="desk", correspondent="ana@client.example", persona=mail.persona_id)


def test_log_lines_carry_the_correlation_id(caplog: Any) -> None:
    context = Context(persona=PersonaFactory.build(), correlation_id="abc")
    context.logger.warning("three rows")
    assert caplog.records[0].correlation_id == "abc"
    assert "abc" in caplog.text
