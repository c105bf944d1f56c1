"""A Django project that is nothing but a queue.

All options of the queue are the defaults, unless a measurement is about one.
"""

import json
import os

from tests.benchmarks.contenders.django_database import database_of

DATABASES = {"default": database_of(os.environ["BENCH_URL"])}
INSTALLED_APPS = ["flexiq_django", "tests.benchmarks.contenders.ours"]
SECRET_KEY = "only for benchmarks"
USE_TZ = True
FLEXIQ = json.loads(os.environ.get("BENCH_FLEXIQ", "{}"))
