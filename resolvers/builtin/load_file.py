"""A prompt kept as a file."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self

from django import forms
from django.core.exceptions import ValidationError

from protege import conf
from protege.exceptions import ResolverError, ResolverFileNotFoundError
from protege.messages import ModelMessage, Role
from resolvers.base import Resolver
from resolvers.forms import RoleField
from resolvers.registry import register_resolver

if TYPE_CHECKING:
    from protege.context import Context

SUFFIXES = (".md", ".txt")

PathFrom = Callable[["Context"], "str | Path | None"]


def path_complaint(path: str) -> str | None:
    """Why the admin may not name `path`, whether it exists or not; None when it may."""
    pure = PurePosixPath(path)
    if not path.strip() or "\0" in path or "\\" in path or pure.is_absolute():
        return "Enter a path below the prompt folder, such as ada/voice.md."
    if any(part.startswith(".") for part in path.split("/")):
        return "A path has no part that begins with a dot."
    if pure.suffix not in SUFFIXES:
        return f"Only files that end in {' or '.join(SUFFIXES)} can be loaded."
    return None


def below_prompt_root(path: str, root: Path) -> Path:
    """The real place of a path that the admin names; `ResolverError` when it lies, or links, anywhere else."""
    wrong = path_complaint(path)
    if wrong is None:
        target = _real(root / path)
        wrong = _target_complaint(target, _real(root)) if target is not None else "It leads nowhere."
    if wrong is not None or target is None:
        raise ResolverError(f"The prompt file {path!r} cannot be loaded. {wrong}", code="prompt_path")
    return target


def _real(path: Path) -> Path | None:
    """The path without links; None for one that no file system can have, such as a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def _target_complaint(target: Path, root: Path | None) -> str | None:
    """A link is judged by where it leads: to another visible prompt, or nowhere."""
    if root is None or not target.is_relative_to(root):
        return "It leads out of the prompt folder."
    return path_complaint(target.relative_to(root).as_posix())


class LoadFileForm(forms.Form):
    path = forms.CharField(
        max_length=500,
        help_text="Below the prompt folder, .md or .txt. {persona} and {responsibility} stand for the slugs.",
    )
    role = RoleField()

    def clean_path(self) -> str:
        path: str = self.cleaned_data["path"]
        wrong = path_complaint(path)
        if wrong:
            raise ValidationError(wrong, code="prompt_path")
        # Which file a pattern means is known only when it runs.
        if "{persona}" not in path and "{responsibility}" not in path:
            _check_file(path)
        return path


def _check_file(path: str) -> None:
    try:
        target = below_prompt_root(path, conf.load().prompt_root)
        _decoded(_read(target, path), path)
    except ResolverError as error:
        raise ValidationError(str(error), code=error.code) from error


@register_resolver
class LoadFileResolver(Resolver):
    """Says what stands in a file, read anew each time.

    Wired in code, a relative path stands under `BASE_DIR` and an absolute one is used as it is. In the admin it lies
    below `PROTEGE["PROMPT_ROOT"]`. A blank file says nothing; a missing one is a `ResolverFileNotFoundError`.
    """

    name = "load_file"
    label = "Prompt file"
    description = "The text of a file in the prompt folder."
    options_form = LoadFileForm

    _confined = False

    def __init__(
        self, path: str | Path | None = None, *, path_from: PathFrom | None = None, role: str = Role.SYSTEM
    ) -> None:
        if (path is None) == (path_from is None):
            raise ValueError("LoadFileResolver takes exactly one of `path` and `path_from`.")
        self.path = path
        self.path_from = path_from
        self.role = Role(role)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        resolver = cls(str(options.get("path") or ""), role=options.get("role") or Role.SYSTEM)
        resolver._confined = True
        return resolver

    def resolve(self, context: "Context") -> ModelMessage | None:
        path = self._path(context)
        if path is None:
            return None
        shown = str(path)
        target = self._place(path, context)
        raw = _read(target, shown)
        text = _decoded(raw, shown)
        if not text.strip():
            return None
        return self.message(self.role, text, source=f"file:{shown}@{hashlib.sha256(raw).hexdigest()[:12]}")

    def _path(self, context: "Context") -> str | Path | None:
        if self.path_from is not None:
            return self.path_from(context)
        return _with_slugs(str(self.path), context) if self._confined else self.path

    def _place(self, path: str | Path, context: "Context") -> Path:
        return below_prompt_root(str(path), context.config.prompt_root) if self._confined else conf.base_dir() / path


def _with_slugs(path: str, context: "Context") -> str | None:
    """The path of this run; None when it asks for the responsibility of a run that has none."""
    if "{responsibility}" in path:
        if context.responsibility is None:
            return None
        path = path.replace("{responsibility}", context.responsibility.slug)
    return path.replace("{persona}", context.persona.slug)


def _read(target: Path, shown: str) -> bytes:
    try:
        if target.is_file():
            return target.read_bytes()
    except OSError as error:
        raise ResolverError(
            f"The prompt file {shown!r} cannot be read ({type(error).__name__}). Check its name and permissions.",
            code="prompt_unreadable",
        ) from error
    raise ResolverFileNotFoundError(shown, str(target.absolute()))


def _decoded(raw: bytes, shown: str) -> str:
    try:
        # A byte order mark is no part of the text, and line ends are the same for the model on every system.
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ResolverError(
            f"The prompt file {shown!r} is not UTF-8 (byte {error.start}). Save it as UTF-8.", code="prompt_encoding"
        ) from None
