"""Aliases of the settings: another address for a provider, or a server of one's own."""

from typing import Any

import pytest

from protege.conf import Config
from protege.exceptions import ModelNameError
from protege.inference import build_request
from protege.inference.adapter import capture
from protege.inference.naming import check_model, target_of


def told(name: str, providers: Any) -> str:
    with pytest.raises(ModelNameError) as caught:
        check_model(name, Config(providers=providers))
    assert caught.value.code == "unknown_model"
    return str(caught.value)


class TestAliases:
    def test_one_speaks_chat_completions_at_its_address(self) -> None:
        config = Config(providers={"local": {"base_url": "http://127.0.0.1:9/v1"}})
        wire = capture(build_request("Hi."), model="local:a:b", max_tokens=8, config=config)
        assert (wire.url, wire.provider, wire.body["model"]) == (
            "http://127.0.0.1:9/v1/chat/completions",
            "local",
            "a:b",
        )

    @pytest.mark.parametrize(
        ("name", "path"),
        [
            ("anthropic:claude-sonnet-4-5", "/v1/messages"),
            ("openai-chat:gpt-5-mini", "/chat/completions"),
            ("openai:gpt-5-mini", "/responses"),
            ("ollama:llama3.2", "/chat/completions"),
        ],
    )
    def test_a_built_in_name_keeps_its_interface_at_another_address(self, name: str, path: str) -> None:
        config = Config(providers={name.partition(":")[0]: {"base_url": "http://127.0.0.1:9"}})
        wire = capture(build_request("Hi."), model=name, max_tokens=8, config=config)
        assert wire.url == f"http://127.0.0.1:9{path}"

    def test_a_kind_can_be_chosen(self) -> None:
        config = Config(providers={"eu": {"base_url": "http://127.0.0.1:9", "kind": "anthropic"}})
        wire = capture(build_request("Hi."), model="eu:claude-sonnet-4-5", max_tokens=8, config=config)
        assert (wire.url, wire.provider) == ("http://127.0.0.1:9/v1/messages", "eu")

    @pytest.mark.parametrize(
        ("alias", "complaint"),
        [
            ({}, "needs a base_url"),
            ({"base_url": "127.0.0.1:9"}, "http:// nor https://"),
            ({"base_url": 9}, "http:// nor https://"),
            ({"base_url": "http://127.0.0.1:9", "api_key": "sk"}, "unknown key 'api_key'"),
            ({"base_url": "http://127.0.0.1:9", "kind": "offline"}, "cannot be of the kind 'offline'"),
            ({"base_url": "http://127.0.0.1:9", "kind": "opnai"}, "Did you mean 'openai'?"),
            ("http://127.0.0.1:9", "must be a dict"),
        ],
    )
    def test_a_wrong_one_is_named_with_what_is_wrong(self, alias: Any, complaint: str) -> None:
        assert complaint in told("local:any", {"local": alias})

    def test_the_offline_models_cannot_be_replaced(self) -> None:
        assert target_of("offline:echo", Config(providers={"offline": {"base_url": "http://x"}})).kind == "offline"
