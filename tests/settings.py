"""Settings of the test project. The database comes from one variable, FLEXIQ_TEST_DATABASE_URL.

Unset, it is SQLite. The test database is always one that other processes can open: worker
processes started by a test get its name in FLEXIQ_TEST_DATABASE_NAME (see tests.processes).
"""

import json
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import environ

env = environ.Env()


def sqlite_database(database: dict[str, Any]) -> dict[str, Any]:
    """A file in WAL mode, writing in IMMEDIATE transactions: what the docs tell users to have."""
    test_file = Path(tempfile.gettempdir()) / f"flexiq-tests-{os.getpid()}.sqlite3"
    return {
        **database,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            **database.get("OPTIONS", {}),
        },
        "TEST": {"NAME": str(test_file)},
    }


def mysql_database(database: dict[str, Any]) -> dict[str, Any]:
    """MariaDB or MySQL with the full range of Unicode."""
    return {
        **database,
        "OPTIONS": {"charset": "utf8mb4", **database.get("OPTIONS", {})},
        "TEST": {"NAME": f"test_{database['NAME']}", "CHARSET": "utf8mb4"},
    }


def postgresql_database(database: dict[str, Any]) -> dict[str, Any]:
    """PostgreSQL as it comes."""
    return {**database, "TEST": {"NAME": f"test_{database['NAME']}"}}


def chosen_database() -> dict[str, Any]:
    """The database of the URL; in a worker process that a test started, the test's own."""
    url = os.environ.get("FLEXIQ_TEST_DATABASE_URL") or "sqlite://:memory:"
    parsed = environ.Env.db_url_config(url)
    complete = {
        "django.db.backends.sqlite3": sqlite_database,
        "django.db.backends.mysql": mysql_database,
        "django.db.backends.postgresql": postgresql_database,
    }
    database = complete[parsed["ENGINE"]](parsed)
    database["NAME"] = os.environ.get("FLEXIQ_TEST_DATABASE_NAME", database["NAME"])
    return database


DATABASES = {"default": chosen_database()}

# The many processes that tests start show no admin, and start a fifth sooner without one.
ADMIN = ["django.contrib.admin", "django.contrib.messages", "django.contrib.sessions"]
INSTALLED_APPS = [
    *([] if "FLEXIQ_TEST_WITHOUT_ADMIN" in os.environ else ADMIN),
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "flexiq_django",
    "tests.testapp",
]

# Worker processes of a test get the settings the test is about as JSON.
FLEXIQ = json.loads(os.environ.get("FLEXIQ_TEST_SETTINGS", "{}"))

# Django 5.2 has no task framework of its own; its backport is used where it is installed.
TASKS = {"default": {"BACKEND": "flexiq_django.backend.FlexiqBackend", "QUEUES": []}}
if find_spec("django_tasks") and not find_spec("django.tasks"):
    INSTALLED_APPS.append("django_tasks")

# `make migrations-check` turns these, to show that no project's choice makes migrations of ours.
DEFAULT_AUTO_FIELD = f"django.db.models.{env.str('FLEXIQ_TEST_AUTO_FIELD', 'BigAutoField')}"
USE_TZ = env.bool("FLEXIQ_TEST_USE_TZ", True)
LANGUAGE_CODE = env.str("FLEXIQ_TEST_LANGUAGE_CODE", "en-us")

TIME_ZONE = "UTC"
SECRET_KEY = "only for tests"
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "timed": {"format": "{asctime} {process} {levelname} {name} {message}", "style": "{"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "timed"}},
    "loggers": {
        "flexiq_django": {
            "handlers": ["stderr"],
            "level": env.str("FLEXIQ_TEST_LOG_LEVEL", "INFO"),
        },
    },
}
