"""The settings of the tests, with a second database of a kind that is not supported."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES["foreign"] = {"ENGINE": "django.db.backends.dummy"}
