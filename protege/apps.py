"""The app that joins the other three."""

from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

SIBLINGS = ("personas", "threads", "resolvers")


class ProtegeConfig(AppConfig):
    """Refuses to start beside a package that hides one of ours, then loads the checks and the hosts' extensions."""

    name = "protege"
    label = "protege"
    verbose_name = "Protege"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType) -> None:
        super().__init__(app_name, app_module)
        refuse_hidden_siblings(Path(self.path).resolve().parent)

    def ready(self) -> None:
        from protege import checks  # noqa: F401  # importing registers them

        autodiscover_modules("protege_extensions")


def refuse_hidden_siblings(folder: Path) -> None:
    """Raise `ImproperlyConfigured` unless our three other packages are found in `folder`, beside `protege`."""
    for name in SIBLINGS:
        expected, found = folder / name, _location(name)
        if found != expected:
            raise ImproperlyConfigured(
                f"Protege needs its own package {name!r} at {expected}, but Python finds "
                f"{found or 'no package of that name'}. Rename the other package, or put the folder of Protege "
                "before it on sys.path."
            )


def _location(name: str) -> Path | None:
    """Folder of the package that `import name` would give; the file, when it is a plain module."""
    spec = find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin).resolve() if spec.origin else None
