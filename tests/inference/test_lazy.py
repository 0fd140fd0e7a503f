"""The LLM library takes seconds to load: only what builds a model pays for it."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = "{'pydantic_ai', 'openai', 'anthropic', 'genai_prices', 'httpx2'}"


def loaded(code: str) -> str:
    """The heavy modules that are loaded after `code` in a process of its own."""
    report = f"print(sorted({HEAVY} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys, django; django.setup(); {code}; {report}"],
        cwd=Path(__file__).resolve().parents[2],
        env={"DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


@pytest.mark.parametrize(
    "modules",
    [
        "protege.inference, protege.inference.adapter",
        "protege.inference.encoding, protege.inference.errors, protege.inference.naming, protege.inference.offline",
        "protege.inference.loop, protege.inference.tokens, protege.inference.wire, protege.testing",
    ],
)
def test_importing_loads_none_of_the_library(modules: str) -> None:
    assert loaded(f"import {modules}") == "[]"


def test_checking_the_name_of_an_offline_model_loads_no_foreign_sdk() -> None:
    code = (
        "from protege.conf import Config; from protege.inference.naming import check_model; "
        "check_model('offline:echo', Config())"
    )
    assert "anthropic" not in loaded(code)
