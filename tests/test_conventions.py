"""What the repository promises about itself."""

import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("protege", "personas", "threads", "resolvers")
LONGEST = 300


def our_files() -> Iterator[Path]:
    for folder in (*PACKAGES, "tests", "templates"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".html", ".css", ".js"} and "migrations" not in path.parts:
                yield path


def test_imports_keep_to_the_layers() -> None:
    ran = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.django_db
def test_no_model_change_lacks_its_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_migrations_are_named_by_meaning() -> None:
    names = [path.stem for package in PACKAGES for path in (ROOT / package / "migrations").glob("0*.py")]
    assert names
    assert [name for name in names if re.search(r"_auto_|_initial$|^\d+_alter_", name)] == []


def test_no_file_is_long() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in our_files()}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def test_starting_does_not_load_the_llm_library() -> None:
    """It takes seconds, which a web process pays when the first wire preview asks and not at start."""
    code = "import sys, django; django.setup(); import protege.urls; print('pydantic_ai' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "False"


def test_both_lists_of_requirements_say_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert sorted(line for line in lines if line and not line.startswith("#")) == sorted(project["dependencies"])


def test_every_requirement_has_both_bounds() -> None:
    lines = [line for name in ("", "-dev") for line in (ROOT / f"requirements{name}.txt").read_text().splitlines()]
    wanted = [line for line in lines if line and line[0] not in "#-"]
    assert [line for line in wanted if ">=" not in line or "<" not in line] == []


def test_the_landing_page_and_the_error_page_render(client: object, db: None) -> None:
    page = client.get("/")  # type: ignore[attr-defined]
    assert page.status_code == 200
    assert b"/admin/" in page.content
    assert b"style=" not in page.content
    assert client.get("/nothing-here/").status_code == 404  # type: ignore[attr-defined]


@pytest.mark.parametrize("address", [("192.0.2.1", 25), ("example.com", 443)])
def test_tests_reach_nothing_beyond_this_machine(address: tuple[str, int]) -> None:
    with socket.socket() as connection, pytest.raises(RuntimeError, match="only loopback is open"):
        connection.connect(address)
    with pytest.raises(RuntimeError, match="only loopback is open"):
        socket.create_connection(address, timeout=1)
