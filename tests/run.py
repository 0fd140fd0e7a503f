"""Runs the suite on SQLite, with coverage, and on PostgreSQL, and says at the end what ran.

    python tests/run.py                 both
    python tests/run.py sqlite          one of them, without the bar on coverage

PostgreSQL is the one that DATABASE_URL names, else one that answers on this machine. With CI=true it must not be
missing.
"""

import os
import subprocess
import sys
from urllib.parse import urlsplit

ON_THIS_MACHINE = (
    "postgres:///postgres",
    "postgres://postgres@localhost:5432/postgres",
    "postgres://postgres:postgres@localhost:5432/postgres",
)


def postgresql() -> str | None:
    """URL of a PostgreSQL server that lets us in, or None."""
    named = os.environ.get("DATABASE_URL", "")
    if named.startswith(("postgres", "pgsql")):
        return named
    return next((url for url in ON_THIS_MACHINE if answers(url)), None)


def answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url.replace("postgres://", "postgresql://"), connect_timeout=3).close()
    except psycopg.Error:
        return False
    return True


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def run(title: str, url: str, *options: str) -> tuple[int, str]:
    """Run pytest with its output passed through; return its exit code and its last line."""
    print(f"\n=== Tests on {title}\n", flush=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        env={**os.environ, "DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    last = ""
    for line in process.stdout or ():
        print(line, end="", flush=True)
        last = line.strip("= \n") or last
    return process.wait(), last


def main(wanted: list[str]) -> int:
    ran: list[tuple[str, int, str]] = []
    missing = False
    if not wanted or "sqlite" in wanted:
        coverage = [] if wanted else ["--cov", "--cov-report=term-missing:skip-covered"]
        ran.append(("SQLite", *run("SQLite", "sqlite:///:memory:", *coverage)))
    if not wanted or "postgresql" in wanted:
        url = postgresql()
        missing = url is None
        if url is not None:
            ran.append(("PostgreSQL", *run(f"PostgreSQL, {without_password(url)}", url)))
    print("\n=== What ran")
    for title, code, last in ran:
        print(f"  {title:<12}{'passed' if code == 0 else 'FAILED'}: {last}")
    if missing:
        print("  PostgreSQL  NOT RUN: no server answers. Start one, or name it in DATABASE_URL.")
    required = missing and (os.environ.get("CI") == "true" or "postgresql" in wanted)
    return 1 if required or any(code for _, code, _ in ran) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
