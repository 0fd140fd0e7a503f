"""Where a request may be made from, whose key it carries, and what a preview shows of its address."""

import asyncio
import json
import threading
from typing import Any

import pytest

from protege.conf import Config
from protege.exceptions import ModelError
from protege.inference import build_request
from protege.inference.adapter import capture, send
from protege.inference.replies import Reply
from protege.inference.wire import shown_url
from tests.inference.server import ANTHROPIC, CHAT, Answer, Provider

HELLO = build_request("Hello.")


def sent(model: str, provider: Provider, **options: Any) -> Reply:
    return send(HELLO, model=model, max_tokens=64, **{"config": provider.config, "timeout": 10, **options})


def error_of(model: str, provider: Provider, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        sent(model, provider, **options)
    return caught.value


class TestKeys:
    @pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"])
    def test_it_comes_from_the_providers_own_variable(
        self, provider: Provider, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """The aliases here name no variable, so the provider's own is read, and goes to its address alone."""
        monkeypatch.setenv(name, "sk-own")
        model = CHAT if name.startswith("OPENAI") else ANTHROPIC
        at = f"http://127.0.0.1:{provider.server_port}"
        sent(model, provider, config=Config(providers={model.partition(":")[0]: {"base_url": at}}))
        assert "sk-own" in str(provider.headers)

    @pytest.mark.parametrize(
        ("model", "variable"),
        [(CHAT, "OPENAI_API_KEY"), ("openai:gpt-5", "OPENAI_API_KEY"), (ANTHROPIC, "ANTHROPIC_API_KEY")],
    )
    def test_a_missing_one_is_named(
        self, provider: Provider, monkeypatch: pytest.MonkeyPatch, model: str, variable: str
    ) -> None:
        monkeypatch.delenv(variable, raising=False)
        error = error_of(model, provider, config=Config())
        assert (error.code, error.status) == ("authentication", None)
        assert str(error) == f"Set the environment variable {variable}."


class TestWhere:
    def test_inside_a_running_loop(self, provider: Provider) -> None:
        async def inside() -> tuple[str, Any]:
            wire = capture(HELLO, model=CHAT, max_tokens=64, config=provider.config)
            return sent(CHAT, provider).text, wire.body

        text, body = asyncio.run(inside())
        assert text == "It is on its way."
        assert [json.loads(posted) for posted in provider.posted] == [body]

    def test_errors_come_out_of_a_running_loop_too(self, provider: Provider) -> None:
        async def inside() -> None:
            provider.answer = Answer(status=429, body={})
            assert error_of(CHAT, provider).code == "rate_limited"

        asyncio.run(inside())

    def test_in_several_threads_at_once(self, provider: Provider) -> None:
        texts: list[str] = []
        threads = [threading.Thread(target=lambda: texts.append(sent(CHAT, provider).text)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts == ["It is on its way."] * 4

    def test_a_proxy_of_the_environment_is_used(self, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{provider.server_port}")
        sent("local:any", provider, config=Config(providers={"local": {"base_url": "http://models.invalid/v1"}}))
        assert provider.headers[0]["host"] == "models.invalid"


class TestShown:
    """A preview shows the address, and no credential that stands in it."""

    def test_no_password_of_an_address(self) -> None:
        config = Config(providers={"local": {"base_url": "http://ben:geheim@127.0.0.1:9/v1"}})
        wire = capture(HELLO, model="local:any", max_tokens=64, config=config)
        assert wire.url == "http://127.0.0.1:9/v1/chat/completions"

    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("http://127.0.0.1:9/v1/chat", "http://127.0.0.1:9/v1/chat"),
            ("https://ben:geheim@host.example/v1?key=geheim#x", "https://host.example/v1"),
        ],
    )
    def test_nor_a_query(self, url: str, shown: str) -> None:
        assert shown_url(url) == shown
