"""Settings of the example project, from the environment or from a file `.env` next to manage.py.

Every variable may be absent. The defaults are for trying things out on your own machine; the README
names what to set anywhere else.
"""

from pathlib import Path
from typing import Any

import django
import environ

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

# --- databases -----------------------------------------------------------------------------------


def complete_database(database: dict[str, Any]) -> dict[str, Any]:
    """The parsed DATABASE_URL with the options each engine should have."""
    options: dict[str, dict[str, Any]] = {
        # Readers beside one writer, and a writer that waits for its turn instead of failing.
        "django.db.backends.sqlite3": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
        },
        "django.db.backends.mysql": {"charset": "utf8mb4"},
    }
    chosen = options.get(database["ENGINE"], {})
    return {**database, "OPTIONS": {**chosen, **database.get("OPTIONS", {})}}


DEMO_DATABASE = BASE_DIR / "db.sqlite3"

DATABASE_URL = env.str("DATABASE_URL", default="") or f"sqlite:///{DEMO_DATABASE}"
DATABASES = {"default": complete_database(env.db_url_config(DATABASE_URL))}

# --- jobs ----------------------------------------------------------------------------------------

# Only what the environment names; everything else keeps the default of flexiq_django.
DAY = 86_400

FLEXIQ: dict[str, Any] = {
    # Imports can be looked up for a month; a nightly schedule of ours archives them after a week.
    "RETENTION": {
        "archived_jobs": 30 * DAY,
        "dead_letter": 90 * DAY,
        "task_logs": 30 * DAY,
        "task_metrics": 30 * DAY,
        "job_errors": 30 * DAY,
    },
    "ARCHIVE_AFTER": None,
    **{
        key: env.float(f"FLEXIQ_{key}")
        for key in ("LOCK_GRACE_SECONDS", "STOP_TIMEOUT_SECONDS", "POLL_SECONDS")
        if f"FLEXIQ_{key}" in env.ENVIRON
    },
}

#: How many rows of a file one job imports.
AIRPORTS_CHUNK_ROWS = env.int("AIRPORTS_CHUNK_ROWS", default=500)

# --- files and mail ------------------------------------------------------------------------------

#: Everything the project writes beside its database: uploads, reports, mail, the demo's worker log.
VAR_DIR = Path(env.str("EXAMPLE_VAR_DIR", default=str(BASE_DIR / "var"))).resolve()

MEDIA_ROOT = VAR_DIR / "media"
MEDIA_URL = "media/"
STATIC_URL = "static/"

MAIL_DIR = VAR_DIR / "mail"
MAIL_TO = env.str("MAIL_TO", default="reports@example.org")
DEFAULT_FROM_EMAIL = env.str("MAIL_FROM", default="airports@example.org")

if django.VERSION >= (6, 1):
    MAILERS = {
        "default": {
            "BACKEND": "airports.mail.OnceFileBackend",
            "OPTIONS": {"file_path": str(MAIL_DIR)},
        }
    }
else:
    EMAIL_BACKEND = "airports.mail.OnceFileBackend"
    EMAIL_FILE_PATH = str(MAIL_DIR)

# --- the rest of Django --------------------------------------------------------------------------

DEBUG = env.bool("DEBUG", default=True)
SECRET_KEY = env.str("SECRET_KEY", default="only for the example on your own machine")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "flexiq_django",
    "airports",
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

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-us"
TIME_ZONE = env.str("TIME_ZONE", default="UTC")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "timed": {"format": "{asctime} {process} {levelname} {name}: {message}", "style": "{"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "timed"}},
    "loggers": {
        "airports": {"handlers": ["stderr"], "level": "INFO"},
        "flexiq_django": {"handlers": ["stderr"], "level": "INFO"},
    },
}
