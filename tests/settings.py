"""The project as the tests run it. `DATABASE_URL` chooses the database; nothing else of the machine matters."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

os.environ.update(
    SECRET_KEY="a-key-for-tests-only",
    DEBUG="0",
    ALLOWED_HOSTS="testserver,localhost",
    PROTEGE_TASKS="immediate",
    EMAIL_URL="memorymail://",
    EMAIL_TIMEOUT="30",
    REDIS_URL="",
    PROTEGE_OPERATORS="",
    PROTEGE_AUTHSERV_IDS="",
    PROTEGE_INBOUND_SECRET="",
    PROTEGE_INBOUND_SECRETS="{}",
    PROTEGE_IMAP_ACCOUNTS="{}",
    ANYMAIL_WEBHOOK_SECRET="",
    ANYMAIL_MAILGUN_WEBHOOK_SIGNING_KEY="",
    HTTPS="0",
)

from protege.settings import *  # noqa: F403
from protege.settings import DATABASES

# What a person's own environment or `.env` holds never reaches a test.
for name in [name for name in os.environ if name.endswith("_API_KEY")]:
    del os.environ[name]

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# A file, because threads that share SQLite's memory wait for nobody; by process, so that two runs do not meet.
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    folder = tempfile.mkdtemp(prefix="protege-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    DATABASES["default"]["TEST"] = {"NAME": str(Path(folder) / "test.sqlite3")}
else:
    DATABASES["default"]["TEST"] = {"NAME": f"test_protege_{os.getpid()}"}
