"""A request that failed: each failure has its code, is tried once, and tells nothing of what the provider wrote."""

import time
from typing import Any

import pytest

from protege.conf import Config
from protege.exceptions import ModelError
from protege.inference import Request
from protege.inference.adapter import send
from tests.inference.conversations import user
from tests.inference.server import ANTHROPIC, CHAT, Answer, Provider, chat_answer

TOLD = "the customer's secret text"

both = pytest.mark.parametrize("model", [CHAT, ANTHROPIC])


def failure(config: Config, model: str, *, timeout: float = 10) -> ModelError:
    with pytest.raises(ModelError) as raised:
        send(Request((user("U"),)), model=model, max_tokens=9, config=config, timeout=timeout)
    return raised.value


def error_body(model: str, message: str = TOLD, **fields: Any) -> dict[str, Any]:
    error = {"type": "invalid_request_error", "message": message, **fields}
    return {"type": "error", "error": error} if model == ANTHROPIC else {"error": error}


@both
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "authentication"),
        (403, "authentication"),
        (404, "invalid_request"),
        (408, "timeout"),
        (413, "context_too_large"),
        (422, "invalid_request"),
        (429, "rate_limited"),
        (500, "provider_error"),
        (502, "provider_error"),
        (503, "overloaded"),
        (504, "timeout"),
        (529, "overloaded"),
    ],
)
def test_each_status_has_its_code(provider: Provider, model: str, status: int, code: str) -> None:
    provider.answer = Answer(status=status, body=error_body(model))
    error = failure(provider.config, model)
    assert (error.code, error.status) == (code, status)


CONTEXT_LENGTH = [
    (CHAT, error_body(CHAT, "This model's maximum context length is 9 tokens.", code="context_length_exceeded")),
    (ANTHROPIC, error_body(ANTHROPIC, "prompt is too long: 210000 tokens > 200000 maximum")),
]


@pytest.mark.parametrize(("model", "body"), CONTEXT_LENGTH)
def test_a_request_beyond_the_window_has_a_code_of_its_own(provider: Provider, model: str, body: Any) -> None:
    provider.answer = Answer(status=400, body=body)
    assert failure(provider.config, model).code == "context_too_large"


def test_a_quota_that_is_used_up_is_a_rate_limit(provider: Provider) -> None:
    provider.answer = Answer(status=429, body=error_body(CHAT, code="insufficient_quota", type="insufficient_quota"))
    assert failure(provider.config, CHAT).code == "rate_limited"


@both
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503, 529])
def test_nothing_of_the_providers_body_is_told(
    provider: Provider, model: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    provider.answer = Answer(status=status, body=error_body(model, code=TOLD))
    error = failure(provider.config, model)
    assert "secret" not in repr(error) + str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert "secret" not in caplog.text


@both
@pytest.mark.parametrize("status", [429, 500, 503])
def test_nothing_is_tried_again(provider: Provider, model: str, status: int) -> None:
    provider.answer = Answer(status=status, body=error_body(model))
    failure(provider.config, model)
    assert len(provider.posted) == 1


@both
@pytest.mark.parametrize("body", [b"{secret", b"", b"<html>secret</html>", b"\xff\xfe", b"null", [1], {}])
def test_an_answer_that_cannot_be_read(provider: Provider, model: str, body: Any) -> None:
    provider.answer = Answer(body=body)
    error = failure(provider.config, model)
    assert error.code == "bad_response"
    assert "secret" not in str(error)


def test_an_answer_without_a_choice_cannot_be_read(provider: Provider) -> None:
    provider.answer = Answer(body=chat_answer(choices=[]))
    assert failure(provider.config, CHAT).code == "bad_response"


def test_an_error_that_comes_as_a_success_is_no_answer(provider: Provider) -> None:
    provider.answer = Answer(body=error_body(CHAT))
    assert failure(provider.config, CHAT).code == "bad_response"


@both
def test_an_error_page_that_is_no_json_keeps_its_code(provider: Provider, model: str) -> None:
    provider.answer = Answer(status=502, body=b"<html>secret</html>")
    error = failure(provider.config, model)
    assert (error.code, error.status) == ("provider_error", 502)


@both
def test_a_connection_that_breaks_in_the_midst_of_the_answer(provider: Provider, model: str) -> None:
    provider.answer = Answer(cut=True)
    assert failure(provider.config, model).code == "connection"


@pytest.mark.parametrize("model", [CHAT, ANTHROPIC, "local:llama"])
def test_a_provider_that_is_not_there(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("TEST_KEY", "sk")
    with Provider() as gone:
        config = gone.config
    assert failure(config, model).code == "connection"


@both
def test_a_slow_answer_is_not_waited_for(provider: Provider, model: str) -> None:
    provider.answer = Answer(slow=True)
    started = time.monotonic()
    assert failure(provider.config, model, timeout=0.2).code == "timeout"
    assert time.monotonic() - started < 20


@both
def test_a_missing_key_names_the_variable_of_the_alias(
    provider: Provider, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_KEY")
    error = failure(provider.config, model)
    assert error.code == "authentication"
    assert "TEST_KEY" in str(error)
    assert provider.posted == []


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ],
)
def test_a_missing_key_names_the_providers_own_variable(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    error = failure(Config(), model)
    assert error.code == "authentication"
    assert variable in str(error)
