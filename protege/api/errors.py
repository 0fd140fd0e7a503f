"""One shape for every error: `{"code": "...", "detail": "..."}`. Codes are stable, the detail says what to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler

from protege.exceptions import (
    DraftError,
    LeaseLostError,
    MailError,
    MissingExtraError,
    ModelError,
    ModelNameError,
    NotVisibleError,
    ProtegeError,
    ResolverError,
    RunRefusedError,
    ScopeError,
    StaleDraftError,
    StaleRevisionError,
    ToolFailure,
)

STATUSES: dict[type[ProtegeError], int] = {
    ScopeError: status.HTTP_403_FORBIDDEN,
    NotVisibleError: status.HTTP_404_NOT_FOUND,
    StaleRevisionError: status.HTTP_409_CONFLICT,
    LeaseLostError: status.HTTP_409_CONFLICT,
    DraftError: status.HTTP_409_CONFLICT,
    ModelNameError: status.HTTP_400_BAD_REQUEST,
    MissingExtraError: status.HTTP_400_BAD_REQUEST,
    MailError: status.HTTP_400_BAD_REQUEST,
    ResolverError: status.HTTP_422_UNPROCESSABLE_ENTITY,
    RunRefusedError: status.HTTP_422_UNPROCESSABLE_ENTITY,
    ModelError: status.HTTP_422_UNPROCESSABLE_ENTITY,
    ToolFailure: status.HTTP_422_UNPROCESSABLE_ENTITY,
}
"""What the caller can do something about. The other errors are ours, and stay errors of the server."""

BAD_REQUEST_CODES = ("unknown_scope", "as_persona", "bad_cursor", "bad_limit", "empty_draft")
"""Codes of what is wrong with the request itself, whatever class the error has."""

CONFLICT_CODES = ("not_failed", "answered_already")
"""Codes of a row that is in another state by now, whatever class the error has."""


class Refusal(exceptions.APIException):
    """An error of ours on its way out."""

    def __init__(self, status_code: int, code: str, detail: str) -> None:
        super().__init__(detail, code)
        self.status_code = status_code


class PreconditionRequired(exceptions.APIException):
    """A write that does not say which version it started from."""

    status_code = status.HTTP_428_PRECONDITION_REQUIRED
    default_code = "precondition_required"
    default_detail = "Send If-Match with the ETag of the version that you changed."


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's handler, for our errors too, and with one shape; None for what is no answer but a fault."""
    response = exception_handler(_as_api_error(error), context)
    if response is not None:
        response.data = {"code": _code(error), "detail": "\n".join(_lines(response.data)), **_facts(error)}
    return response


def _as_api_error(error: Exception) -> Exception:
    if isinstance(error, ProtegeError):
        found = status_of(error)
        return error if found is None else Refusal(found, error.code, str(error))
    if isinstance(error, ValidationError):
        return exceptions.ValidationError(error.message_dict if hasattr(error, "error_dict") else error.messages)
    return error


def status_of(error: ProtegeError) -> int | None:
    """The HTTP status of an error of ours; None when the fault is not the caller's."""
    if error.code in BAD_REQUEST_CODES:
        return status.HTTP_400_BAD_REQUEST
    if error.code in CONFLICT_CODES:
        return status.HTTP_409_CONFLICT
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)


def _facts(error: Exception) -> dict[str, Any]:
    """What a program needs to go on, besides the code."""
    return {"arrived": error.arrived, "revision": error.current} if isinstance(error, StaleDraftError) else {}


def _code(error: Exception) -> str:
    if isinstance(error, ProtegeError):
        return error.code
    if isinstance(error, Http404):
        return exceptions.NotFound.default_code
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied.default_code
    if isinstance(error, exceptions.APIException) and isinstance(error.detail, exceptions.ErrorDetail):
        return str(error.detail.code)
    return exceptions.ValidationError.default_code


def _lines(data: Any, place: str = "") -> Iterator[str]:
    """Every text in DRF's nested details, with the field it belongs to before it."""
    if isinstance(data, Mapping):
        for name, inner in data.items():
            named = "" if name in ("detail", "non_field_errors", "__all__") else str(name)
            yield from _lines(inner, ".".join(filter(None, [place, named])))
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for inner in data:
            yield from _lines(inner, place)
    else:
        yield f"{place}: {data}" if place else str(data)
