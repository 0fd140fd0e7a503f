"""Mail to the operators. It holds ids, counts and codes, and nothing of a mail or a prompt."""

import logging
from datetime import timedelta

from django.core.mail import EmailMessage
from django.db.models import Exists, Q
from django.utils import timezone

from protege import conf
from protege.exceptions import describe
from protege.services.wakeups import when_committed
from threads.models import InboundMail

logger = logging.getLogger("protege.alerts")

INTERVAL = timedelta(hours=1)


def tell_operators(inbound: InboundMail, text: str) -> bool:
    """Mail `text` to PROTEGE["OPERATORS"] once what happened is committed; at most one mail an hour for a reason.

    The reason is the one on the row of `inbound`, which also remembers that it was told. False when the operators
    know already.
    """
    now = timezone.now()
    reason = InboundMail.objects.values_list("reason", flat=True).get(pk=inbound.pk)
    told = Exists(InboundMail.objects.filter(reason=reason, alerted_at__gt=now - INTERVAL))
    if not InboundMail.objects.filter(Q(pk=inbound.pk), ~told).update(alerted_at=now):
        return False
    when_committed(lambda: _send(reason, text))
    return True


def _send(reason: str, text: str) -> None:
    operators = conf.load().operators
    if not operators:
        return
    # Nobody's mail system is to answer this either.
    headers = {"Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All"}
    try:
        EmailMessage(f"[Protege] {reason}", text, None, list(operators), headers=headers).send()
    except Exception as error:  # whatever the mail backend raises: the mail is quarantined all the same
        logger.error("the operators could not be told of %s: %s", reason, describe(error))
