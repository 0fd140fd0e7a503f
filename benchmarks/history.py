"""What the chain reads for a reply, as ratios: against whole rows, and as the thread grows."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django

django.setup()

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext, setup_databases, teardown_databases

from protege.context import Context
from resolvers import ResolverChain
from resolvers.builtin import ThreadHistoryResolver
from tests.factories import EmailThreadFactory, MessageFactory, OutboundFactory, RunFactory, ToolUseFactory
from threads.models import Message, Run, ToolUse

ROUNDS = 9
LENGTHS = (60, 500, 2_000)
RAW_TEXT = "A quoted line of an old mail.\n" * 700
"""What mails carry besides the part that the model reads: 20 kB of quotes."""


def grow(length: int) -> Message:
    """A thread of `length` mails with a tool round for each pair; the mail that is to be answered."""
    thread = EmailThreadFactory()
    persona = thread.persona
    inbound = Message.objects.bulk_create(
        MessageFactory.build(thread=thread, persona=persona, sequence=number, text_body=RAW_TEXT)
        for number in range(1, length, 2)
    )
    Message.objects.bulk_create(
        OutboundFactory.build(thread=thread, persona=persona, answers=mail, sequence=mail.sequence + 1)
        for mail in inbound
    )
    runs = Run.objects.bulk_create(RunFactory.build(message=mail, thread=thread, persona=persona) for mail in inbound)
    ToolUse.objects.bulk_create(ToolUseFactory.build(run=run, message=run.message) for run in runs)
    return MessageFactory(thread=thread, sequence=length + 1)


def measured(work: Callable[[], Any]) -> tuple[float, int]:
    """Median seconds of `work`, and its number of queries."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    with CaptureQueriesContext(connection) as queries:
        work()
    return median(times), len(queries)


def main() -> None:
    first = None
    print("mails  queries  latest 50, against a thread of 60  whole rows of the thread, against latest 50")
    for length in LENGTHS:
        mail = grow(length)
        context = Context(persona=mail.persona, message=mail)
        chain = ResolverChain().use(ThreadHistoryResolver, limit=50)
        took, queries = measured(lambda chain=chain, context=context: chain.run(context))
        whole, _ = measured(lambda mail=mail: [each.to_llm_text() for each in mail.thread.messages.all()])
        first = first or took
        print(f"{length:>5}  {queries:>7}  {took / first:>35.1f}  {whole / took:>47.1f}")


if __name__ == "__main__":
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with transaction.atomic():
            main()
            transaction.set_rollback(True)
    finally:
        teardown_databases(databases, verbosity=0)
