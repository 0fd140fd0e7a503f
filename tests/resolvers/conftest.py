"""Runs that nobody stored: a persona, a mail and a responsibility as plain instances."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from personas.models import Persona, Responsibility
from protege.context import Context
from tests.factories import EmailThreadFactory
from threads.models import Direction, EmailThread, Message, MessageStatus, Trust

NOW = datetime(2026, 3, 6, 23, 30, tzinfo=UTC)

MakeContext = Callable[..., Context]


def persona(**fields: Any) -> Persona:
    return Persona(
        **{
            "pk": 7,
            "slug": "ada",
            "name": "Ada",
            "address": "ada@desk.example",
            "tenant": "desk",
            "instructions": "You are Ada.",
            "timezone": "Europe/Vienna",
            "model": "offline:echo",
            **fields,
        }
    )


def mail(**fields: Any) -> Message:
    return Message(
        **{
            "direction": Direction.INBOUND,
            "status": MessageStatus.RECEIVED,
            "from_address": "ana@client.example",
            "from_name": "Ana",
            "subject": "Order 77",
            "trust": Trust.VERIFIED,
            **fields,
        }
    )


@pytest.fixture
def reply() -> MakeContext:
    """The context of an answer to a mail with the given fields."""

    def make(**fields: Any) -> Context:
        return Context(persona=persona(), message=mail(**fields), now=NOW)

    return make


@pytest.fixture
def scheduled() -> Context:
    duty = Responsibility(slug="weekly", name="Weekly report", instructions="Write the report.", subject="Report")
    return Context(persona=persona(), responsibility=duty, now=NOW)


@pytest.fixture
def thread() -> EmailThread:
    thread: EmailThread = EmailThreadFactory()
    return thread
