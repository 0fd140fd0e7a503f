"""What all posted mail has in common: a body read within a limit, and one shape of answer."""

import logging
from collections.abc import Callable, Iterable
from functools import wraps

import django.db
from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from protege.exceptions import ProtegeError, describe
from threads.models import InboundMail

logger = logging.getLogger("protege.webhooks")

CHUNK = 64 * 1024
DRAINED = 2
"""How many times the limit is read in all, so that who posts too much gets to read the answer."""

View = Callable[..., HttpResponse]


class RefusedError(ProtegeError):
    """A post that is turned away; nothing of it is stored."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail, code=code)
        self.status = status


def door(*methods: str) -> Callable[[View], View]:
    """A view for other people's programs.

    It asks for no cookie and no login, which the secret takes the place of. It is in no transaction, even with
    `ATOMIC_REQUESTS`: a mail must be committed before it is parsed. Without the database it asks to be called again.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def answered(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
            try:
                return view(request, *args, **kwargs)
            except RefusedError as error:
                return refusal(error.status, error.code, str(error))
            except django.db.Error as error:
                logger.error("a posted mail could not be stored: %s", describe(error))
                return refusal(503, "database_away", "The mail could not be stored. Post it again later.")

        limited: View = require_http_methods(list(methods))(answered)
        return csrf_exempt(login_not_required(transaction.non_atomic_requests(limited)))

    return decorate


def refusal(status: int, code: str, detail: str) -> JsonResponse:
    return JsonResponse({"code": code, "detail": detail}, status=status)


def accepted(deliveries: Iterable[InboundMail], *, too_large: int = 413) -> JsonResponse:
    """What became of the mail, by ids and codes; `too_large` is the status that keeps the sender from trying again."""
    told = [{"id": one.pk, "status": one.status, "reason": one.reason} for one in deliveries]
    refused = any(one["reason"] == "too_large" for one in told)
    return JsonResponse({"deliveries": told}, status=too_large if refused else 200)


def read_body(request: HttpRequest, *, limit: int) -> bytes:
    """The body, read in chunks past Django's own limit; of a longer one, `limit` bytes and one more."""
    body, seen = bytearray(), 0
    try:
        while seen <= limit * DRAINED and (chunk := request.read(CHUNK)):
            seen += len(chunk)
            body += chunk[: limit + 1 - len(body)]
    except UnreadablePostError:
        raise RefusedError(400, "cut_off", "The connection ended within the mail.") from None
    if seen <= limit and seen < _announced(request):
        raise RefusedError(400, "cut_off", "The mail is shorter than its Content-Length.")
    if not bytes(body[:CHUNK]).strip():
        raise RefusedError(400, "empty", "The mail is empty.")
    return bytes(body)


def _announced(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
