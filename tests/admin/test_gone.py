"""People and personas that are gone leave readable pages (C05)."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from personas.models import Persona
from protege.services import chains
from resolvers.models import ChainRevision
from tests.admin import pages
from tests.factories import (
    MessageFactory,
    ResponsibilityFactory,
    RunFactory,
    ToolUseFactory,
    UserFactory,
)
from threads.models import EmailThread, Message, Run, ToolUse

pytestmark = pytest.mark.django_db


def test_what_a_deleted_colleague_did_stays(root: Client, ada: Persona) -> None:
    bea = UserFactory(username="bea")
    revision = chains.save(ada, "message", [], expected_revision=0, author=bea, note="Empty")
    mail = MessageFactory(thread__persona=ada)
    use = ToolUseFactory(run=RunFactory(message=mail), decided_by=bea, decided_by_label="bea")
    answer = root.post(f"/admin/auth/user/{bea.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert not User.objects.filter(username="bea").exists()
    assert (Message.objects.count(), ChainRevision.objects.count(), ToolUse.objects.count()) == (1, 1, 1)
    for row in (revision, use):
        assert "bea" in pages.text(root.get(pages.url_of(row)))
    assert "bea" in pages.text(root.get(pages.list_url(ChainRevision)))
    assert root.get(pages.url_of(mail.thread)).status_code == 200


def test_the_pages_of_a_deactivated_persona_work(desk: Client, ada: Persona) -> None:
    mail = MessageFactory(thread__persona=ada)
    run = RunFactory(message=mail)
    Persona.objects.update(is_active=False)
    later = MessageFactory(thread=mail.thread, readable_body="Are you still there?")
    for row in (ada, mail.thread, mail, run, later):
        assert desk.get(pages.url_of(row)).status_code == 200
    for model in (Persona, EmailThread, Message, Run):
        assert pages.row_count(desk.get(pages.list_url(model))) > 0
    assert "Are you still there?" in pages.text(desk.get(pages.url_of(mail.thread)))


def test_a_run_names_a_responsibility_that_is_gone(desk: Client, ada: Persona) -> None:
    duty = ResponsibilityFactory(persona=ada, slug="weekly")
    run = RunFactory(
        message=None,
        thread=None,
        persona=ada,
        kind="responsibility",
        responsibility=duty,
        responsibility_label="weekly",
    )
    assert desk.post(pages.url_of(duty, "delete"), {"post": "yes"}).status_code == 302
    assert "weekly" in pages.text(desk.get(pages.url_of(run)))
    assert Run.objects.get().responsibility is None
