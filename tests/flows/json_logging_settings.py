"""The settings of the tests in a project that logs everything as JSON, as the docs tell it to."""

from tests.settings import *  # noqa: F403

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"job": {"()": "flexiq_django.logging.JobContextFilter"}},
    "formatters": {"json": {"()": "flexiq_django.logging.JsonFormatter"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "filters": ["job"], "formatter": "json"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
