"""Prompt files: wired in code, and within the bounds of the admin."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from pytest_django import Settings

from protege.context import Context
from protege.exceptions import ResolverError, ResolverFileNotFoundError
from protege.messages import ModelMessage
from resolvers import ResolverChain
from resolvers.builtin import LoadFileResolver
from resolvers.options import clean_options
from tests.resolvers.conftest import MakeContext


@pytest.fixture
def prompts(settings: Settings, tmp_path: Path) -> Path:
    """The prompt folder, beside a file that nobody may read through it."""
    root = tmp_path / "prompts"
    (root / "team").mkdir(parents=True)
    settings.BASE_DIR = tmp_path
    settings.PROTEGE = {**settings.PROTEGE, "PROMPT_ROOT": root}
    (tmp_path / "outside.md").write_text("outside", encoding="utf-8")
    (root / "ada.md").write_text("You are Ada.", encoding="utf-8")
    return root


def from_admin(context: Context, **options: Any) -> list[ModelMessage]:
    return ResolverChain.from_steps([{"resolver": "load_file", "options": options}]).run(context)


# Wired in code


@pytest.mark.parametrize("arguments", [{}, {"path": "a.md", "path_from": lambda context: "a.md"}])
def test_exactly_one_of_path_and_path_from(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        LoadFileResolver(**arguments)


def test_a_relative_path_stands_under_base_dir_and_an_absolute_one_as_it_is(prompts: Path, scheduled: Context) -> None:
    for path in ("outside.md", prompts.parent / "outside.md", str(prompts / "../outside.md")):
        assert ResolverChain().use(LoadFileResolver, path).run(scheduled) == [ModelMessage("system", "outside")]


def test_a_callable_gives_the_path_from_the_context(prompts: Path, scheduled: Context) -> None:
    chain = ResolverChain().use(LoadFileResolver, path_from=lambda context: f"prompts/{context.persona.slug}.md")
    assert chain.run(scheduled) == [ModelMessage("system", "You are Ada.")]
    assert ResolverChain().use(LoadFileResolver, path_from=lambda context: None).run(scheduled) == []


def test_the_role_is_system_unless_another_is_asked_for(prompts: Path, scheduled: Context) -> None:
    (message,) = ResolverChain().use(LoadFileResolver, "outside.md", role="user").run(scheduled)
    assert message.role == "user"
    with pytest.raises(ValueError, match="robot"):
        LoadFileResolver("outside.md", role="robot")


def test_a_blank_file_says_nothing(prompts: Path, scheduled: Context) -> None:
    (prompts / "blank.md").write_text(" \n\t\n", encoding="utf-8")
    assert ResolverChain().use(LoadFileResolver, "prompts/blank.md").run(scheduled) == []


def test_a_missing_file_fails_loudly_with_both_paths(prompts: Path, scheduled: Context) -> None:
    for missing in ("prompts/none.md", "prompts/team"):
        with pytest.raises(ResolverFileNotFoundError) as caught:
            LoadFileResolver(missing).resolve(scheduled)
        assert (caught.value.path, caught.value.absolute) == (missing, str(prompts.parent / missing))
        assert isinstance(caught.value, FileNotFoundError)


def test_a_file_that_is_not_utf8_is_named(prompts: Path, scheduled: Context) -> None:
    (prompts / "latin.md").write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(ResolverError, match=r"'prompts/latin.md' is not UTF-8"):
        LoadFileResolver("prompts/latin.md").resolve(scheduled)


def test_letters_survive_and_a_byte_order_mark_does_not(prompts: Path, scheduled: Context) -> None:
    (prompts / "bom.md").write_bytes("\ufeffGrüße 中\r\nZeile".encode())
    (message,) = ResolverChain().use(LoadFileResolver, "prompts/bom.md").run(scheduled)
    assert message.content == "Grüße 中\nZeile"


def test_it_is_read_each_time(prompts: Path, scheduled: Context) -> None:
    chain = ResolverChain().use(LoadFileResolver, "outside.md")
    assert chain.run(scheduled)[0].content == "outside"
    (prompts.parent / "outside.md").write_text("changed", encoding="utf-8")
    assert chain.run(scheduled)[0].content == "changed"


def test_the_source_names_path_and_content(prompts: Path, scheduled: Context) -> None:
    (traced,) = ResolverChain.from_steps([{"resolver": "load_file", "options": {"path": "ada.md"}}]).trace(scheduled)
    assert traced.sources == (f"file:ada.md@{hashlib.sha256(b'You are Ada.').hexdigest()[:12]}",)
    assert traced.kind == "system"


# In the admin


def test_a_path_of_the_admin_stands_under_the_prompt_root(prompts: Path, scheduled: Context) -> None:
    (prompts / "team" / "voice.txt").write_text("Be kind.", encoding="utf-8")
    assert from_admin(scheduled, path="ada.md")[0].content == "You are Ada."
    assert from_admin(scheduled, path="team/voice.txt", role="user") == [ModelMessage("user", "Be kind.")]


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md", "team/../../outside.md", "/etc/hostname", ".env", ".hidden.md", ".git/config.md", "ada.py",
        "ada", "ada.md.bak", "..", "", " ", "team\\..\\..\\outside.md", "ada.md\0.txt", "./ada.md",
    ],
)  # fmt: skip
def test_nothing_else_is_within_reach(path: str, prompts: Path, scheduled: Context) -> None:
    for name in (".env", ".hidden.md", "ada.py", "ada", "ada.md.bak"):
        (prompts / name).write_text("secret", encoding="utf-8")
    with pytest.raises(ResolverError) as caught:
        from_admin(scheduled, path=path)
    assert not isinstance(caught.value, ResolverFileNotFoundError)
    with pytest.raises(ValidationError):
        clean_options("load_file", {"path": path})


def test_no_link_leads_out_or_to_a_hidden_file(prompts: Path, scheduled: Context) -> None:
    (prompts / ".env").write_text("SECRET=1", encoding="utf-8")
    (prompts / "link.md").symlink_to(prompts.parent / "outside.md")
    (prompts / "folder").symlink_to(prompts.parent)
    (prompts / "env.md").symlink_to(prompts / ".env")
    (prompts / "inner.md").symlink_to(prompts / "ada.md")
    for path in ("link.md", "folder/outside.md", "env.md"):
        with pytest.raises(ResolverError, match="cannot be loaded"):
            from_admin(scheduled, path=path)
        with pytest.raises(ValidationError):
            clean_options("load_file", {"path": path})
    assert from_admin(scheduled, path="inner.md")[0].content == "You are Ada."


def test_what_no_file_system_can_have_is_refused(prompts: Path, scheduled: Context) -> None:
    (prompts / "loop.md").symlink_to(prompts / "loop.md")
    for path in ("loop.md", "\ud83d.md", "x" * 300 + ".md"):
        with pytest.raises(ResolverError):
            from_admin(scheduled, path=path)
        with pytest.raises(ValidationError):
            clean_options("load_file", {"path": path})


def test_slugs_are_replaced_plainly(prompts: Path, scheduled: Context, reply: MakeContext) -> None:
    (prompts / "ada").mkdir()
    (prompts / "ada" / "weekly.md").write_text("Every week.", encoding="utf-8")
    assert from_admin(scheduled, path="{persona}/{responsibility}.md")[0].content == "Every week."
    assert from_admin(scheduled, path="{persona}.md")[0].content == "You are Ada."
    assert from_admin(reply(), path="{persona}/{responsibility}.md") == []
    with pytest.raises(ResolverFileNotFoundError):
        from_admin(scheduled, path="{persona.instructions}.md")


def test_a_slug_cannot_climb(prompts: Path, scheduled: Context) -> None:
    scheduled.persona.slug = "../outside"
    with pytest.raises(ResolverError, match="cannot be loaded"):
        from_admin(scheduled, path="{persona}.md")


def test_the_form_says_at_once_what_is_missing_or_unreadable(prompts: Path) -> None:
    (prompts / "latin.md").write_bytes(b"\xff\xfe")
    for path, complaint in [("none.md", "does not exist"), ("latin.md", "not UTF-8")]:
        with pytest.raises(ValidationError, match=complaint) as caught:
            clean_options("load_file", {"path": path})
        assert list(caught.value.message_dict) == ["path"]
    assert clean_options("load_file", {"path": "{persona}.md"}) == {"path": "{persona}.md"}


def test_the_prompt_root_is_below_base_dir_by_default(settings: Settings, tmp_path: Path, reply: MakeContext) -> None:
    settings.BASE_DIR = tmp_path
    settings.PROTEGE = {key: value for key, value in settings.PROTEGE.items() if key != "PROMPT_ROOT"}
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "a.md").write_text("default", encoding="utf-8")
    assert from_admin(reply(), path="a.md")[0].content == "default"
