"""Bytes that strangers sent go out to disk, and only to those who may have them."""

import pytest
from django.test import Client
from django.urls import reverse

from personas.models import Persona
from tests.admin import pages
from tests.admin.conftest import staff
from tests.factories import AttachmentFactory, InboundMailFactory
from threads.models import Attachment, InboundMail

pytestmark = pytest.mark.django_db


def url(row: Attachment | InboundMail) -> str:
    name = "attachment_download" if isinstance(row, Attachment) else "inboundmail_raw"
    return reverse(f"admin:protege_threads_{name}", args=[row.pk])


@pytest.fixture
def attachment(ada: Persona) -> Attachment:
    return AttachmentFactory(
        message__thread__persona=ada, filename='Grüße "1".html', content_type="text/html", data=b"<script>1</script>"
    )


@pytest.fixture
def inbound(ada: Persona) -> InboundMail:
    return InboundMailFactory(persona=ada, tenant="desk")


def test_an_attachment_is_saved_and_never_shown(desk: Client, attachment: Attachment) -> None:
    response = desk.get(url(attachment))
    assert b"".join(response.streaming_content) == b"<script>1</script>"
    assert response["Content-Disposition"].startswith("attachment; filename")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Type"] == "application/octet-stream"
    assert "sandbox" in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]


def test_who_may_not_have_an_attachment_learns_nothing(attachment: Attachment, theirs: Persona, desk: Client) -> None:
    hidden = AttachmentFactory(message__thread__persona=theirs)
    assert staff("vera", "protege_threads.view_emailthread").get(url(attachment)).status_code == 404
    assert desk.get(url(hidden)).status_code == 404
    assert staff("nobody").get(url(attachment)).status_code == 404
    assert desk.get(url(Attachment(pk=999_999))).status_code == 404
    assert "login" in Client().get(url(attachment))["Location"]


def test_the_transcript_links_files_for_those_who_may_have_them(desk: Client, attachment: Attachment) -> None:
    thread = attachment.message.thread
    assert url(attachment) in desk.get(pages.url_of(thread)).content.decode()
    reader = staff("vera", "protege_threads.view_emailthread")
    page = reader.get(pages.url_of(thread))
    assert "Grüße" in pages.text(page)
    assert url(attachment) not in page.content.decode()


def test_a_file_that_is_gone_is_a_404(desk: Client, attachment: Attachment) -> None:
    attachment.file.storage.delete(attachment.file.name)
    assert desk.get(url(attachment)).status_code == 404


def test_the_raw_source_is_the_mail_as_it_came(desk: Client, inbound: InboundMail) -> None:
    response = desk.get(url(inbound))
    assert inbound.raw is not None
    assert b"".join(response.streaming_content) == inbound.raw.unpack()
    assert response["Content-Disposition"] == f'attachment; filename="mail-{inbound.pk}.eml"'
    assert response["X-Content-Type-Options"] == "nosniff"


def test_the_raw_source_needs_its_own_permission(inbound: InboundMail, desk: Client, theirs: Persona) -> None:
    view, raw = "protege_threads.view_inboundmail", "protege_threads.view_raw_mail"
    reader = staff("vera", view)
    assert reader.get(url(inbound)).status_code == 404
    assert "Raw source" not in pages.text(reader.get(pages.url_of(inbound)))
    assert staff("rob", raw).get(url(inbound)).status_code == 404
    allowed = staff("rita", view, raw)
    assert allowed.get(url(inbound)).status_code == 200
    assert url(inbound) in allowed.get(pages.url_of(inbound)).content.decode()
    assert desk.get(url(InboundMailFactory(persona=theirs, tenant="other"))).status_code == 404
    assert desk.get(url(InboundMailFactory(status="unroutable"))).status_code == 404


def test_a_raw_source_past_its_term_is_a_404(desk: Client, inbound: InboundMail) -> None:
    InboundMail.objects.update(raw=None)
    assert desk.get(url(inbound)).status_code == 404
    assert "deleted after its term" in pages.text(desk.get(pages.url_of(inbound)))
