"""A Django project that is nothing but a queue."""

import os

from tests.benchmarks.contenders.django_database import database_of

DATABASES = {"default": database_of(os.environ["BENCH_URL"])}
INSTALLED_APPS = ["django_tasks_db"]
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
SECRET_KEY = "only for benchmarks"
USE_TZ = True
