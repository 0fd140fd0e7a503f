"""Every error that Protege raises, by one base class.

Errors are told apart by class or by `code`, never by their text; the text says what to do.
Configuration errors stand apart from those of a run.
"""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured


class ProtegeError(Exception):
    """Base of all errors; `code` is the short stable word that is stored and logged."""

    code = "error"

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class ConfigurationError(ProtegeError, ImproperlyConfigured):
    """Settings, prompts or registrations that a person has to put right."""

    code = "configuration"


class RegistryError(ConfigurationError, ValueError):
    """A registration that cannot stand: a wrong type, no name, or a name that is taken."""

    code = "registration"


class MissingExtraError(ConfigurationError, ImportError):
    """An optional library that is not installed; the message holds the pip line."""

    code = "missing_extra"

    def __init__(self, library: str, extra: str, *, package: str = "protege") -> None:
        super().__init__(f"{library} is not installed. Install it with: pip install '{package}[{extra}]'")


class ResolverError(ProtegeError):
    """A resolver that broke its contract or could not do its work."""

    code = "resolver_failed"


class UnknownResolverError(ResolverError, LookupError):
    """A stored step names a resolver that no installed app registers."""

    code = "unknown_resolver"


class ResolverFileNotFoundError(ResolverError, FileNotFoundError):
    """A prompt file that is not there: a misconfiguration, so it fails loudly.

    `path` is the path as it was configured, `absolute` where it was looked for.
    """

    code = "prompt_missing"

    def __init__(self, path: str, absolute: str) -> None:
        ResolverError.__init__(
            self, f"The prompt file {path!r} does not exist. Create {absolute} or correct the step's path."
        )
        self.path = path
        self.absolute = absolute

    def __str__(self) -> str:
        return str(self.args[0])


class ScopeError(ProtegeError, PermissionError):
    """An owner scope that the principal may not use, or that needs an identity it lacks."""

    code = "scope_refused"


class NotVisibleError(ProtegeError, LookupError):
    """A row that does not exist, or that the asker may not see: the two are not told apart."""

    code = "not_found"


class StaleRevisionError(ProtegeError):
    """What was edited has been saved by somebody else in the meantime."""

    code = "stale_revision"

    def __init__(self, *, expected: int, current: int) -> None:
        super().__init__(
            f"The chain is at revision {current}, and this edit started from revision {expected}. "
            "Reload it, make the change again, and save."
        )
        self.expected = expected
        self.current = current


class RunRefusedError(ProtegeError):
    """A run that must not call the model; `code` is stored on the run."""

    code = "refused"


class LeaseLostError(ProtegeError):
    """Another worker has taken the row over; whoever holds the old lease stops and writes nothing."""

    code = "lease_lost"


class ModelError(ProtegeError):
    """A request that the model's provider did not answer usefully.

    `code` is one of `rate_limited overloaded provider_error invalid_request authentication connection
    timeout bad_response context_too_large script_exhausted`; `status` is the HTTP status, where there was one.
    """

    code = "provider_error"

    def __init__(self, message: str, *, code: str, status: int | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status


class ModelNameError(ConfigurationError, ValueError):
    """A model string that cannot be built."""

    code = "unknown_model"


class ToolFailure(ProtegeError):
    """A tool's refusal to do what was asked; the text goes back to the model."""

    code = "tool_failed"


class MailError(ProtegeError):
    """A mail that cannot be taken or sent; `code` is stored with it."""

    code = "mail"


class DraftError(ProtegeError):
    """A draft that cannot be edited, approved or discarded; `code` says why: `not_a_draft`, `empty_draft`."""

    code = "draft"


class StaleDraftError(DraftError):
    """The thread has moved on since the draft was written, or since the page that shows it was loaded.

    `arrived` are the ids of the messages that the draft does not know of, in their order; it is empty when only a
    draft was changed. `current` is the thread's revision now: whoever has read what arrived approves with it.
    """

    code = "stale_draft"

    def __init__(self, *, arrived: Sequence[int], current: int) -> None:
        super().__init__(
            f"Since this draft was written, {len(arrived)} messages have arrived in its thread or a draft was changed. "
            f"Read the thread again, then approve with the revision {current}."
        )
        self.arrived = list(arrived)
        self.current = current


def describe(error: BaseException) -> str:
    """The class name and code of an error, and nothing that may quote a mail or a prompt."""
    code: Any = getattr(error, "code", None)
    return f"{type(error).__name__} ({code})" if isinstance(code, str) else type(error).__name__
