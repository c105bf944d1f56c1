"""The settings of the tests as a project has them that has not configured any logging."""

from tests.settings import *  # noqa: F403

LOGGING: dict[str, object] = {}
