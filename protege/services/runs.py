"""Runs: prepare, preview, execute. A preview shares every line with a run up to the socket."""

import logging

from django.db import transaction
from django.utils import timezone

from protege.exceptions import LeaseLostError, ModelError, ProtegeError, RunRefusedError, describe
from protege.inference.limits import Limits
from protege.inference.loop import Answer, run_loop
from protege.services import outgoing, run_life
from protege.services.journal import RunJournal
from protege.services.preparing import Prepared, prepare
from protege.services.previewing import Preview, preview
from threads.models import Origin, Run, RunKind, RunStatus
from threads.status import refresh_status

__all__ = ["Prepared", "Preview", "execute", "prepare", "preview"]

logger = logging.getLogger("protege.runs")


def execute(run_id: int) -> Run:
    """Do the run if it is free: claim, prepare, loop, and record the answer and the end of the run together.

    Never raises for what a model, a tool or a chain does: the run's row takes it, with a code. No error text of a
    provider and no trace of a tool ever becomes a mail.
    """
    run = run_life.claim(run_id)
    if run is not None:
        try:
            _work(run)
        except LeaseLostError as error:
            logger.warning("run %s: %s", run.pk, describe(error))
    return Run.objects.get(pk=run_id)


def _work(run: Run) -> None:
    try:
        _conclude(run, _ask(run))
    except LeaseLostError:
        raise
    except RunRefusedError as refusal:
        run_life.finish(run, RunStatus.REFUSED, code=refusal.code, detail=str(refusal))
    except ProtegeError as error:
        run_life.finish(run, RunStatus.FAILED, code=error.code, detail=str(error))
    except Exception as error:  # the host's code runs inside us: its failure is the run's, and must be seen
        logger.error("run %s failed: %s", run.pk, describe(error))
        run_life.finish(run, RunStatus.FAILED, code="error", detail=f"{type(error).__name__} was raised.")


def _ask(run: Run) -> Answer:
    """Prepare the request and let the model and its tools work on it."""
    now = run.now or timezone.now()
    prepared = prepare(
        run.persona, message=run.message, responsibility=run.responsibility, model=run.model or None, now=now, run=run
    )
    run_life.write(run, **_facts(run, prepared))
    if prepared.refusal is not None:
        raise prepared.refusal
    context = prepared.context
    first_turn = _turns_taken(run)
    return run_loop(
        prepared.request,
        model=prepared.model,
        max_tokens=prepared.max_output_tokens,
        context=context,
        config=context.config,
        limits=Limits.from_config(context.config),
        journal=RunJournal(run, context, prepared.tools, first_turn=first_turn),
        previous=first_turn,
    )


def _facts(run: Run, prepared: Prepared) -> dict[str, object]:
    """What the run was built from, so that it can be understood later."""
    run.thread_revision = run.message.thread.revision if run.message is not None else None
    return {
        "now": prepared.context.now,
        "model": prepared.model,
        "chain_revision": prepared.chain_revision,
        "thread_revision": run.thread_revision,
        "notices": [notice.to_dict() for notice in prepared.notices],
    }


def _turns_taken(run: Run) -> int:
    """How many turns another worker had recorded before this one took over."""
    last = run.tool_uses.order_by("-turn_index").values_list("turn_index", flat=True).first()
    return 0 if last is None else last + 1


def _conclude(run: Run, answer: Answer) -> None:
    """End the run and write its answer in one transaction; the first statement finds out whether it is still ours."""
    with transaction.atomic():
        run_life.finish(run, RunStatus.SUCCEEDED)
        released = outgoing.release_held(run)
        already = any(message.origin == Origin.ANSWER for message in released)
        if run.kind == RunKind.REPLY and not already:
            _write_closing_text(run, answer.text)
        if run.thread_id:
            refresh_status(run.thread_id)


def _write_closing_text(run: Run, text: str) -> None:
    if not text.strip():
        raise ModelError("The model gave an empty answer; nothing was mailed.", code="empty_answer")
    outgoing.write_answer(run, text.strip())
