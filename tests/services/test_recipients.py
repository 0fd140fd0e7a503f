"""Whom an answer goes to, condition by condition."""

from typing import Any

import pytest

from protege.services import runs
from protege.services.recipients import LIMIT, Recipients, reply_recipients
from protege.testing import Say, scripted
from tests.factories import (
    EmailThreadFactory,
    MessageFactory,
    ParticipantFactory,
    PersonaAddressFactory,
    PersonaFactory,
    RunFactory,
)
from threads.models import Message, Participant

pytestmark = pytest.mark.django_db

HELPER = "helper@desk.example"
BEN, DANA, EVE = "ben@client.example", "dana@client.example", "eve@rival.example"


def boxes(*addresses: str) -> list[dict[str, str]]:
    return [{"name": "", "address": address} for address in addresses]


def mail(*, to: Any = (HELPER,), cc: Any = (), reply_to: Any = (), persona: Any = None, **fields: Any) -> Message:
    """A mail of Ana's that opens a thread with Helper, unless `thread` says otherwise."""
    if "thread" not in fields:
        fields["thread"] = EmailThreadFactory(persona=PersonaFactory(address=HELPER, **(persona or {})))
    message = MessageFactory(to=boxes(*to), cc=boxes(*cc), reply_to=boxes(*reply_to), **fields)
    Participant.objects.get_or_create(thread=message.thread, address=message.from_address)
    return message


def joined(*, persona: Any = None, **fields: Any) -> Message:
    """Ana's second mail in a thread, the first of which went to Helper alone."""
    first = mail(persona=persona)
    return mail(thread=first.thread, **fields)


def addresses(found: Recipients) -> tuple[list[str], list[str]]:
    return [box.address for box in found.to], [box.address for box in found.cc]


def codes(found: Recipients) -> list[str]:
    return [notice.code for notice in found.notices]


class TestReplyAll:
    def test_a16_everybody_in_the_conversation_gets_the_answer(self) -> None:
        found = reply_recipients(mail(to=[HELPER, BEN], cc=[DANA]))
        assert addresses(found) == (["ana@client.example", BEN], [DANA])
        assert found.to[0].name == "Ana Moßner"
        assert found.notices == ()

    def test_a16_a_persona_in_blind_copy_answers_the_sender_only(self) -> None:
        assert addresses(reply_recipients(mail(to=[BEN]))) == (["ana@client.example"], [])

    def test_a13_no_own_address_under_whatever_spelling(self) -> None:
        persona = PersonaFactory(address=HELPER)
        PersonaAddressFactory(persona=persona, address="helper@desk-alias.example")
        PersonaFactory(slug="billing", address="billing@desk.example")
        message = mail(
            thread=EmailThreadFactory(persona=persona),
            cc=["HELPER+q3@desk.example", "billing@desk.example", "helper@desk-alias.example"],
            trust="verified",
        )
        found = reply_recipients(message)
        assert addresses(found) == (["ana@client.example"], [])
        assert found.notices == (), "our own addresses are nobody's business"

    def test_a_persona_that_only_its_tag_names_is_named(self) -> None:
        assert addresses(reply_recipients(mail(to=["Helper+q3@desk.example", BEN]))) == (
            ["ana@client.example", BEN],
            [],
        )

    def test_each_address_once(self) -> None:
        message = mail(
            to=[HELPER, BEN, "ANA@client.example"], cc=["BEN@client.example", "ana@client.example", DANA, DANA]
        )
        assert addresses(reply_recipients(message)) == (["ana@client.example", BEN], [DANA])

    @pytest.mark.parametrize("warning", ["mailing_list"])
    def test_a_mailing_list_is_answered_to_the_sender_only(self, warning: str) -> None:
        message = mail(to=[HELPER, BEN], reply_to=["list@client.example"], warnings=[warning])
        assert addresses(reply_recipients(message)) == (["ana@client.example"], [])


class TestWhoMayBeCopied:
    def test_a_stranger_is_left_out_with_a_notice(self) -> None:
        found = reply_recipients(mail(to=[HELPER, EVE], cc=[BEN, "x@elsewhere.example"]))
        assert addresses(found) == (["ana@client.example"], [BEN])
        assert [notice.to_dict() for notice in found.notices] == [
            {"code": "recipients_left_out", "addresses": [EVE, "x@elsewhere.example"]}
        ]

    @pytest.mark.parametrize(
        ("reason", "fields"),
        [
            ("an allowed sender", {"persona": {"allowed_senders": ["*@rival.example", "ana@client.example"]}}),
            ("a verified sender", {"trust": "verified"}),
            ("a verified colleague", {"trust": "own_staff"}),
        ],
    )
    def test_who_may_be_copied(self, reason: str, fields: dict[str, Any]) -> None:
        assert addresses(reply_recipients(mail(cc=[EVE], **fields))) == (["ana@client.example"], [EVE]), reason

    def test_a_participant_may_be_copied(self) -> None:
        message = joined(cc=[EVE])
        ParticipantFactory(thread=message.thread, address=EVE)
        assert addresses(reply_recipients(message)) == (["ana@client.example"], [EVE])

    @pytest.mark.parametrize("address", ["grüße@client.example", '"a>b"@client.example'])
    def test_who_cannot_be_written_to_spoils_nobodys_answer(self, address: str) -> None:
        found = reply_recipients(mail(cc=[address, BEN], trust="verified"))
        assert addresses(found) == (["ana@client.example"], [BEN])
        assert codes(found) == ["recipients_left_out"]

    def test_a_subdomain_and_an_ending_are_other_domains(self) -> None:
        found = reply_recipients(mail(cc=["x@mail.client.example", "x@notclient.example"]))
        assert addresses(found)[1] == []

    @pytest.mark.parametrize("persona", [{}, {"allowed_senders": ["*@client.example", "*@rival.example"]}])
    def test_a_joined_thread_gets_nobody_new_from_an_unverified_sender(self, persona: dict[str, Any]) -> None:
        found = reply_recipients(joined(cc=[BEN, EVE], persona=persona))
        assert addresses(found) == (["ana@client.example"], [])
        assert codes(found) == ["recipients_left_out"]

    def test_a_joined_thread_gets_somebody_new_from_a_verified_sender(self) -> None:
        assert addresses(reply_recipients(joined(cc=[EVE], trust="verified")))[1] == [EVE]

    @pytest.mark.parametrize(("others", "copied"), [(LIMIT - 1, LIMIT - 1), (LIMIT, 0)])
    def test_twenty_recipients_at_most_else_the_sender_only(self, others: int, copied: int) -> None:
        found = reply_recipients(mail(cc=[f"p{number}@client.example" for number in range(others)]))
        assert len(found.cc) == copied
        assert codes(found) == ([] if copied else ["too_many_recipients"])


class TestReplyTo:
    def test_a17_an_unvetted_mailbox_is_not_answered(self) -> None:
        persona = {"allowed_senders": ["*@client.example"]}
        found = reply_recipients(mail(reply_to=["drop@elsewhere.example"], persona=persona))
        assert addresses(found) == (["ana@client.example"], [])
        assert found.notices[0].to_dict() == {"code": "reply_to_refused", "addresses": ["drop@elsewhere.example"]}

    def test_a17_a_verified_sender_alone_does_not_make_it_so(self) -> None:
        found = reply_recipients(mail(reply_to=["drop@elsewhere.example"], trust="verified"))
        assert addresses(found)[0] == ["ana@client.example"]

    def test_a17_the_second_answer_is_clean(self) -> None:
        first = mail(reply_to=["drop@elsewhere.example"], trust="verified")
        assert addresses(reply_recipients(mail(thread=first.thread)))[0] == ["ana@client.example"]

    @pytest.mark.parametrize(
        "fields",
        [
            {"reply_to": [BEN]},
            {"reply_to": [EVE], "persona": {"allowed_senders": ["*@client.example", EVE]}},
        ],
    )
    def test_a17_an_allowed_colleague_is_answered(self, fields: dict[str, Any]) -> None:
        assert addresses(reply_recipients(mail(**fields)))[0] == fields["reply_to"]

    def test_a_participant_is_answered(self) -> None:
        message = joined(reply_to=[EVE])
        ParticipantFactory(thread=message.thread, address=EVE)
        assert addresses(reply_recipients(message))[0] == [EVE]

    def test_one_bad_address_spoils_all(self) -> None:
        assert addresses(reply_recipients(mail(reply_to=[BEN, EVE])))[0] == ["ana@client.example"]

    def test_in_a_joined_thread_an_unverified_sender_brings_nobody_new_by_it(self) -> None:
        assert addresses(reply_recipients(joined(reply_to=[BEN])))[0] == ["ana@client.example"]

    def test_in_a_joined_thread_a_verified_sender_may(self) -> None:
        assert addresses(reply_recipients(joined(reply_to=[BEN], trust="verified")))[0] == [BEN]

    @pytest.mark.parametrize("own", [[HELPER], [HELPER, "ana@client.example"]])
    def test_our_own_address_in_it_is_passed_over(self, own: list[str]) -> None:
        found = reply_recipients(mail(reply_to=own))
        assert addresses(found) == (["ana@client.example"], [])
        assert found.notices == ()

    def test_a_contact_form_is_answered_to_its_single_reply_to(self) -> None:
        message = mail(
            from_address="form@desk-web.example",
            reply_to=[EVE],
            cc=["x@desk-web.example"],
            persona={"form_senders": ["form@desk-web.example"]},
        )
        assert addresses(reply_recipients(message)) == ([EVE], [])


class TestAnswers:
    def test_the_answer_goes_to_them_and_only_they_take_part(self, assistant: Any) -> None:
        message = MessageFactory(
            thread__persona=assistant,
            to=boxes(assistant.address, BEN, EVE),
            cc=boxes(DANA),
            reply_to=boxes("drop@elsewhere.example"),
        )
        ParticipantFactory(thread=message.thread, address=message.from_address)
        with scripted(Say("It is on its way.")):
            run = runs.execute(RunFactory(message=message, status="queued").pk)
        answer = run.outbound.get()
        assert [entry["address"] for entry in answer.to] == ["ana@client.example", BEN]
        assert [entry["address"] for entry in answer.cc] == [DANA]
        assert {notice["code"] for notice in run.notices} == {"reply_to_refused", "recipients_left_out"}
        participants = set(message.thread.participants.values_list("address", flat=True))
        assert participants == {"ana@client.example", BEN, DANA}

    def test_a_draft_makes_nobody_a_participant(self, assistant: Any) -> None:
        message = MessageFactory(
            thread__persona=assistant, thread__reply_mode="draft", to=boxes(assistant.address, BEN)
        )
        with scripted(Say("It is on its way.")):
            runs.execute(RunFactory(message=message, status="queued").pk)
        assert not message.thread.participants.exists()

    def test_rules_take_the_same_queries_for_any_number_of_addresses(self, django_assert_num_queries: Any) -> None:
        for others in (1, 400):
            persona = PersonaFactory()
            cc = [f"p{number}@client.example" for number in range(others)]
            message = mail(to=[persona.address, BEN], cc=cc, thread=EmailThreadFactory(persona=persona))
            with django_assert_num_queries(4):
                reply_recipients(message)
