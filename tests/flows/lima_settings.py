"""The test project as somebody has it who lives in Lima and keeps local times in the database."""

from tests.settings import *  # noqa: F403

USE_TZ = False
TIME_ZONE = "America/Lima"
