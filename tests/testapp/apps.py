"""A user's app, as small as it can be."""

from django.apps import AppConfig


class TestAppConfig(AppConfig):
    """Its keys do not follow the project's DEFAULT_AUTO_FIELD, which tests change."""

    name = "tests.testapp"
    label = "testapp"
    default_auto_field = "django.db.models.BigAutoField"
