"""Django's DATABASES entry for the URL of a benchmark's database."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def database_of(url: str) -> dict[str, Any]:
    """SQLite as the documentation recommends it; PostgreSQL with Django's defaults."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": parts.path,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            },
        }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "OPTIONS": dict(parse_qsl(parts.query)),
    }
