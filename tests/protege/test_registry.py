import pytest

from protege.exceptions import RegistryError
from protege.registry import Registry


class Greeting:
    label = "A greeting"


class Farewell:
    pass


@pytest.fixture
def registry() -> Registry[type]:
    return Registry("word", check=lambda entry: None if isinstance(entry, type) else "it is no class.")


def test_entries_keep_their_order_and_offer_choices(registry: Registry[type]) -> None:
    registry.register("hello", Greeting)
    registry.register("bye", Farewell)
    assert registry.get("hello") is Greeting
    assert registry.get("nothing") is None
    assert registry.choices() == [("hello", "A greeting"), ("bye", "bye")]
    assert list(registry) == registry.names() == ["hello", "bye"]
    assert len(registry) == 2


def test_a_wrong_type_is_refused(registry: Registry[type]) -> None:
    with pytest.raises(RegistryError, match=r"as a word: it is no class\."):
        registry.register("hello", "Greeting")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_missing_name_is_refused(registry: Registry[type], name: str) -> None:
    with pytest.raises(RegistryError, match="has no name"):
        registry.register(name, Greeting)


def test_a_taken_name_is_refused(registry: Registry[type]) -> None:
    registry.register("hello", Greeting)
    registry.register("hello", Greeting)
    with pytest.raises(RegistryError, match="is taken"):
        registry.register("hello", Farewell)


def test_a_temporary_entry_goes_also_after_an_error(registry: Registry[type]) -> None:
    with pytest.raises(ZeroDivisionError), registry.temporarily("hello", Greeting):
        assert "hello" in registry
        raise ZeroDivisionError
    assert "hello" not in registry
