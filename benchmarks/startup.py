"""What it saves a web process that the LLM library is loaded only when a preview or a run asks for it."""

import os
import subprocess
import sys
import time
from statistics import median

ROUNDS = 5
START = "import django; django.setup(); from django.urls import get_resolver; get_resolver().url_patterns"
PRELOAD = "; import pydantic_ai.direct, pydantic_ai.models.openai, pydantic_ai.models.anthropic"


def seconds(code: str) -> float:
    """Wall-clock seconds of a fresh process that runs `code`."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "protege.settings", "SECRET_KEY": "benchmark", "PYTHONPATH": "."}
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    return time.perf_counter() - begin


def main() -> None:
    pairs = [(seconds(START), seconds(START + PRELOAD)) for _ in range(ROUNDS)]
    lean, laden = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    print(f"start of a web process: 1.0; with the LLM library loaded at once: {laden / lean:.1f}")


if __name__ == "__main__":
    main()
