"""The documentation is true: its Python runs, its commands and options exist, its settings are those of the code."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, get_commands, load_command_class
from django.urls import URLPattern, URLResolver

from protege import conf, toolkit
from resolvers import registry

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[Any]:
    return [
        pytest.param(found.group(2), id=f"{page.name}:{page.read_text()[: found.start()].count(chr(10)) + 2}")
        for page in PAGES
        for found in BLOCK.finditer(page.read_text())
        if found.group(1) == language
    ]


def shell_commands(program: str) -> list[Any]:
    """What follows `program` in each line of the shell blocks, up to the end of that one command."""
    found = []
    for block in blocks("shell"):
        for line in block.values[0].replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if any(word.endswith(program) for word in words):
                start = next(index for index, word in enumerate(words) if word.endswith(program)) + 1
                found.append(pytest.param(list(until_operator(words[start:])), id=f"{block.id} {line.strip()}"))
    return found


def until_operator(words: list[str]) -> Iterator[str]:
    for word in words:
        if word in {"|", "<", ">", ">>", "&&", ";", "&"}:
            return
        yield word


@pytest.fixture
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples register is gone after the test."""
    for one in (registry.resolvers, registry.sources, registry.models, toolkit.tools):
        monkeypatch.setattr(one, "_entries", dict(one._entries))


@pytest.mark.django_db
@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("source", blocks("python"))
def test_python_runs(source: str) -> None:
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(source, "docs", "exec"), names)
    assert set(names.get("PROTEGE", {})) <= set(conf.known_keys())
    assert all(isinstance(entry, URLPattern | URLResolver) for entry in names.get("urlpatterns", []))
    if "INSTALLED_APPS" in names:
        assert names["INSTALLED_APPS"][0] == "protege"


@pytest.mark.parametrize("words", shell_commands("manage.py"))
def test_commands_exist_with_the_arguments_shown(words: list[str]) -> None:
    name, *arguments = words
    assert name in get_commands(), f"manage.py has no command {name}."
    app = get_commands()[name]
    command = load_command_class(app, name) if isinstance(app, str) else app
    parser = command.create_parser("manage.py", name)
    parser.set_defaults(backend_name=None)  # db_worker refuses the tests' immediate backend
    try:
        parser.parse_args(arguments)
    except CommandError as error:
        pytest.fail(f"manage.py {' '.join(words)}: {error}")


@pytest.mark.parametrize("words", shell_commands("make"))
def test_make_targets_exist(words: list[str]) -> None:
    targets = re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {word for word in words if "=" not in word} <= set(targets)


def test_every_environment_variable_is_documented() -> None:
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', (ROOT / "protege" / "settings.py").read_text()))
    documented = set(re.findall(r"^#? ?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    keys_of_providers = {name for name in documented if name.endswith("_API_KEY")}
    assert documented - keys_of_providers == read


def test_every_check_is_documented() -> None:
    code = "".join(
        path.read_text()
        for package in ("protege", "personas", "threads", "resolvers")
        for path in (ROOT / package).rglob("checks.py")
    )
    ids = set(re.findall(r'"(protege\.[EW]\d{3})"', code))
    assert ids
    assert set(re.findall(r"^## (protege\.[EW]\d{3})", (ROOT / "docs" / "checks.md").read_text(), re.MULTILINE)) == ids


def test_links_between_pages_lead_somewhere() -> None:
    dead = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert dead == []
