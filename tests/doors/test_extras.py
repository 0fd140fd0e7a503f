"""Without its library a door says what to install, and the others stay open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_without(library: str, code: str) -> subprocess.CompletedProcess[str]:
    """Python code in a process of its own in which `library` is not installed."""
    hidden = f"""
import importlib.util, sys
sys.modules[{library!r}] = None
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *args: None if name == {library!r} else find_spec(name, *args)
import django
django.setup()
"""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    return subprocess.run(
        [sys.executable, "-c", hidden + code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )


def test_mail_is_posted_without_anymail() -> None:
    code = "from django.urls import reverse; print(reverse('protege-webhooks:mime'))"
    assert run_without("anymail", code).stdout == "/inbound/mime/\n"


@pytest.mark.parametrize(
    ("library", "code", "extra"),
    [
        ("anymail", "import protege.webhooks.provider_urls", "anymail"),
        ("anymail", "from protege.mail.providers import payload_of as p; p('mailgun', b'', media_type='').to_mime()",
         "anymail"),
        ("aiosmtpd", "from django.core.management import call_command as c; c('serve_smtp')", "smtp"),
        ("imap_tools", "from protege.services import fetching; fetching._library()", "imap"),
    ],
)  # fmt: skip
def test_a_missing_library_is_named_with_its_pip_line(library: str, code: str, extra: str) -> None:
    ran = run_without(library, code)
    assert ran.returncode == 1
    assert f"pip install 'protege[{extra}]'" in ran.stderr
