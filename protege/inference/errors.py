"""The library's exceptions as ours, told apart by class, without a word of what the provider wrote."""

from protege.exceptions import ModelError

TEXTS = {
    "rate_limited": "The provider's rate limit or quota is used up.",
    "overloaded": "The provider is overloaded.",
    "provider_error": "The provider failed.",
    "invalid_request": "The provider refused the request.",
    "authentication": "The provider refused the key. Check the provider's environment variable.",
    "connection": "The provider could not be reached, or the connection broke.",
    "timeout": "The provider gave no answer in time.",
    "bad_response": "The provider's answer could not be read.",
    "context_too_large": "The request is larger than the model's window.",
}
BY_STATUS = {408: "timeout", 413: "context_too_large", 504: "timeout"}
"""What the library's classes do not tell apart."""

NOT_BUILT = "The request could not be put into the form that this provider takes."


def as_model_error(error: Exception, *, posted: bool) -> ModelError:
    """The `ModelError` for what the library raised; errors of our own pass as they are.

    What is raised before anything was `posted` is about the request and not about an answer.
    """
    if isinstance(error, ModelError):
        return error
    status = getattr(error, "status_code", None)
    code = BY_STATUS.get(status or 0) or _code(error)
    if code == "bad_response" and not posted:
        return ModelError(NOT_BUILT, code="invalid_request")
    told = f" (HTTP {status})" if status else ""
    return ModelError(f"{TEXTS[code]}{told}", code=code, status=status)


def _code(error: Exception) -> str:
    from pydantic_ai import exceptions

    if isinstance(error.__cause__, ValueError):  # an answer that is no JSON counts as no answer for the SDKs
        return "bad_response"
    by_class: list[tuple[type[BaseException], str]] = [
        (exceptions.ModelRateLimitError, "rate_limited"),
        (exceptions.ModelQuotaExceededError, "rate_limited"),
        (exceptions.ModelUnavailableError, "overloaded"),
        (exceptions.ModelAuthenticationError, "authentication"),
        (exceptions.ModelContextWindowExceededError, "context_too_large"),
        (exceptions.ModelRequestRejectedError, "invalid_request"),
        (exceptions.ModelTimeoutError, "timeout"),
        (exceptions.ModelRequestTimeout, "timeout"),
        (exceptions.ModelConnectionError, "connection"),
        (exceptions.ModelServerError, "provider_error"),
        (exceptions.ModelHTTPError, "provider_error"),
        (exceptions.ModelAPIError, "connection"),
        (exceptions.UserError, "invalid_request"),
        (exceptions.UnexpectedModelBehavior, "bad_response"),
    ]
    found = next((code for cls, code in by_class if isinstance(error, cls)), None)
    return found or ("connection" if isinstance(error, OSError) else "bad_response")
