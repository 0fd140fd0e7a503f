"""The stand-alone project. Everything that differs between machines comes from the environment or `.env`.

`.env.example` documents each variable. Nothing of Protege imports this module: a host project has its own.
"""

from pathlib import Path
from typing import Any

import django
import environ
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from protege import __version__
from protege.logs import QuietFormatter

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=False)

SECRET_KEY = env.str("SECRET_KEY", default="")
if not SECRET_KEY:
    if not DEBUG:
        raise ImproperlyConfigured(
            "Set SECRET_KEY in the environment or in .env to a long random text, or set DEBUG=1 on your own machine."
        )
    # Sessions end with the process, which is what a key that nobody keeps can give.
    SECRET_KEY = get_random_secret_key()

ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# `protege` stands first: it finds out whether another package hides personas, threads or resolvers.
INSTALLED_APPS = [
    "protege",
    "personas",
    "threads",
    "resolvers",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    # Django 6 has the task framework itself.
    *(["django_tasks"] if django.VERSION < (6,) else []),
    "django_tasks_db",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "protege.urls"
WSGI_APPLICATION = "protege.wsgi.application"
ASGI_APPLICATION = "protege.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Databases and caches

SQLITE_OPTIONS: dict[str, Any] = {
    # Without IMMEDIATE, two writers that both began as readers meet "database is locked" whatever the timeout.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

DATABASES: dict[str, dict[str, Any]] = {"default": env.db("DATABASE_URL", default=f"sqlite:///{BASE_DIR}/db.sqlite3")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {**SQLITE_OPTIONS, **DATABASES["default"].get("OPTIONS", {})}

REDIS_URL = env.str("REDIS_URL", default="")
if REDIS_URL:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

# Tasks: wake-ups only, every state lives in our own tables. Two queues, so that no slow model holds up delivery.

TASK_BACKENDS = {
    "database": "django_tasks_db.DatabaseBackend",
    "immediate": (
        "django_tasks.backends.immediate.ImmediateBackend"
        if django.VERSION < (6,)
        else "django.tasks.backends.immediate.ImmediateBackend"
    ),
}
PROTEGE_TASKS = env.str("PROTEGE_TASKS", default="database")
if PROTEGE_TASKS not in TASK_BACKENDS:
    raise ImproperlyConfigured(f"PROTEGE_TASKS is {PROTEGE_TASKS!r}. Use one of: {', '.join(TASK_BACKENDS)}.")
TASKS = {"default": {"BACKEND": TASK_BACKENDS[PROTEGE_TASKS], "QUEUES": ["protege-mail", "protege-runs"]}}

# Mail out

vars().update(env.email_url("EMAIL_URL", default="consolemail://" if DEBUG else "smtp://localhost:25"))
EMAIL_TIMEOUT = env.int("EMAIL_TIMEOUT", default=30)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="protege@localhost")

# Protege

PROTEGE: dict[str, Any] = {
    "PROMPT_ROOT": BASE_DIR / "prompts",
    "FILES_ROOT": env.str("PROTEGE_FILES_ROOT", default=str(BASE_DIR / "protege_files")),
    "OPERATORS": env.list("PROTEGE_OPERATORS", default=[]),
    "AUTHSERV_IDS": env.list("PROTEGE_AUTHSERV_IDS", default=[]),
    "INBOUND_SECRETS": env.json("PROTEGE_INBOUND_SECRETS", default={}),
    "IMAP_ACCOUNTS": env.json("PROTEGE_IMAP_ACCOUNTS", default={}),
}
if env.str("PROTEGE_INBOUND_SECRET", default=""):
    PROTEGE["INBOUND_SECRETS"]["inbound"] = {"secret_env": "PROTEGE_INBOUND_SECRET"}

# Webhooks of mail providers, by django-anymail. Each stays closed until its secret is set.
ANYMAIL: dict[str, Any] = {"WEBHOOK_SECRET": env.list("ANYMAIL_WEBHOOK_SECRET", default=[])}
if env.str("ANYMAIL_MAILGUN_WEBHOOK_SIGNING_KEY", default=""):
    ANYMAIL["MAILGUN_WEBHOOK_SIGNING_KEY"] = env.str("ANYMAIL_MAILGUN_WEBHOOK_SIGNING_KEY")

# HTTP API: closed until a view opens it.

REST_FRAMEWORK = {
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "protege.api.errors.handle",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Protege",
    "DESCRIPTION": "AI colleagues reached by e-mail: personas, threads, chains and their preview.",
    "VERSION": __version__,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
}

# Security

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"
HTTPS = env.bool("HTTPS", default=not DEBUG)
SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
if env.bool("BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_HTTPONLY = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Language, time, static files

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "build" / "static")))

# Logs carry ids, counts and codes. No handler mails errors, because Django's error mails hold the request's body,
# and the formatter leaves out what exceptions say, because database errors quote the row.

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"quiet": {"()": QuietFormatter, "format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "quiet"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "django": {"handlers": ["console"], "level": "INFO", "propagate": False},
        # At DEBUG it would log every statement with its parameters.
        "django.db.backends": {"level": "INFO"},
        "protege": {"level": env.str("LOG_LEVEL", default="INFO")},
    },
}
