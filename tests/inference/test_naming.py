"""Model strings, and what is said of those that cannot be built."""

import contextlib
import sys
from typing import Any

import pytest
from pydantic_ai.models import known_model_names

from protege.conf import Config
from protege.exceptions import ConfigurationError, MissingExtraError, ModelError, ModelNameError
from protege.inference.adapter import context_window
from protege.inference.naming import OLLAMA_URL, ModelTarget, check_model, target_of
from tests.inference.conversations import MODELS, captured, user

KINDS = sorted({name.partition(":")[0] for name in known_model_names()})


def aliased(**alias: Any) -> Config:
    return Config(providers={"local": alias})


def complaint(name: str, config: Config | None = None) -> str:
    with pytest.raises(ModelNameError) as raised:
        check_model(name, config or Config())
    return str(raised.value)


@pytest.mark.parametrize("name", [*MODELS, "offline:echo", "offline:scripted", "ollama:llama3.2", "openai-chat:a:b"])
def test_a_model_that_can_be_built_passes_without_a_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    check_model(name, Config())


@pytest.mark.parametrize("name", ["", "gpt-5", "openai:", ":gpt-5", ":"])
def test_what_is_no_model_string_is_told_how_to_write_one(name: str) -> None:
    assert "provider:model" in complaint(name)


@pytest.mark.parametrize(
    ("name", "meant"), [("opneai:gpt-5", "openai"), ("antropic:x", "anthropic"), ("olama:x", "ollama")]
)
def test_a_misspelt_provider_gets_a_hint(name: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in complaint(name)


def test_a_provider_that_resembles_none_gets_the_list() -> None:
    text = complaint("qqqqqq:x")
    assert all(name in text for name in ("anthropic", "offline", "ollama", "openai-chat"))


def test_the_librarys_own_test_model_is_not_offered() -> None:
    assert "Did you mean 'test'?" not in complaint("test:x")


def test_an_unknown_offline_model_names_the_two() -> None:
    text = complaint("offline:parrot")
    assert "offline:echo" in text
    assert "offline:scripted" in text


@pytest.mark.parametrize("kind", KINDS)
def test_each_provider_of_the_library_is_built_or_refused_as_a_configuration(kind: str) -> None:
    with contextlib.suppress(ConfigurationError):
        check_model(f"{kind}:some/monkey", Config())


def test_a_name_with_key_in_it_is_not_taken_for_a_missing_key() -> None:
    assert "monkey" in complaint("openrouter:monkey")


def test_a_missing_sdk_of_ours_prints_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.anthropic", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'protege\[anthropic\]'"):
        check_model("anthropic:claude-sonnet-4-5", Config())


@pytest.mark.parametrize("name", ["groq:x", "gateway/groq:x"])
def test_a_missing_sdk_that_we_have_no_extra_for_prints_the_librarys(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.groq", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'pydantic-ai-slim\[groq\]'"):
        check_model(name, Config())


def test_an_alias_leads_to_a_compatible_server() -> None:
    config = aliased(base_url="http://127.0.0.1:1/v1")
    check_model("local:llama", config)
    assert captured("local:llama", user("U"), config=config).url == "http://127.0.0.1:1/v1/chat/completions"


def test_an_alias_may_be_of_another_kind() -> None:
    config = aliased(kind="anthropic", base_url="http://127.0.0.1:1")
    wire = captured("local:claude-sonnet-4-5", user("U"), config=config)
    assert (wire.provider, wire.url) == ("local", "http://127.0.0.1:1/v1/messages")


def test_an_alias_goes_before_a_provider_of_the_same_name() -> None:
    config = Config(providers={"openai-chat": {"kind": "openai-chat", "base_url": "http://127.0.0.1:1/v1"}})
    assert captured("openai-chat:gpt-5-mini", user("U"), config=config).url == "http://127.0.0.1:1/v1/chat/completions"


def test_no_alias_goes_before_the_offline_models() -> None:
    config = Config(providers={"offline": {"base_url": "http://127.0.0.1:1/v1"}})
    assert target_of("offline:echo", config).kind == "offline"


def test_a_models_name_may_hold_colons() -> None:
    assert target_of("ollama:llama3.2:3b", Config()).model == "llama3.2:3b"


def test_a_compatible_alias_needs_an_address() -> None:
    assert "base_url" in complaint("local:x", aliased(api_key_env="LOCAL_KEY"))


def test_an_unknown_key_of_an_alias_is_named() -> None:
    assert "'bas_url'" in complaint("local:x", aliased(bas_url="http://127.0.0.1:1"))


def test_an_alias_of_an_unknown_kind_is_refused() -> None:
    assert "'anthropic'" in complaint("local:x", aliased(kind="antropic"))


def test_a_provider_without_an_address_of_its_own_takes_none() -> None:
    assert "base_url" in complaint("local:x", aliased(kind="deepseek", base_url="http://127.0.0.1:1"))


def test_an_ollama_is_looked_for_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_BASE_URL", raising=False)
    assert target_of("ollama:x", Config()).base_url == OLLAMA_URL


def test_an_ollama_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:2/v1")
    assert target_of("ollama:x", Config()).base_url == "http://127.0.0.1:2/v1"


def test_the_key_of_an_alias_is_read_at_use(monkeypatch: pytest.MonkeyPatch) -> None:
    target = ModelTarget(provider="local", kind="openai-chat", model="x", api_key_env="LOCAL_KEY")
    monkeypatch.setenv("LOCAL_KEY", "one")
    first = target.key()
    monkeypatch.setenv("LOCAL_KEY", "two")
    assert (first, target.key()) == ("one", "two")


@pytest.mark.parametrize("value", [None, ""])
def test_a_key_that_is_not_set_names_its_variable(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("LOCAL_KEY", value)
    with pytest.raises(ModelError, match="LOCAL_KEY") as raised:
        ModelTarget(provider="local", kind="openai-chat", model="x", api_key_env="LOCAL_KEY").key()
    assert raised.value.code == "authentication"


@pytest.mark.parametrize("model", MODELS)
def test_the_window_of_a_known_model_is_known(model: str) -> None:
    window = context_window(model)
    assert window is not None
    assert window >= 100_000


@pytest.mark.parametrize("model", ["offline:echo", "local:llama", "openai:no-such-model", "nothing"])
def test_the_window_of_another_model_is_not(model: str) -> None:
    assert context_window(model) is None
