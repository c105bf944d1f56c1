"""The app: find task modules, register system checks."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class FlexiqConfig(AppConfig):
    """``INSTALLED_APPS = [..., "flexiq_django"]``."""

    name = "flexiq_django"
    label = "flexiq_django"
    verbose_name = _("Background jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the task module of every app. Starts no thread and touches no database."""
        from django.conf import settings

        from flexiq_django import checks  # noqa: F401 - registers itself
        from flexiq_django.api.registry import add_finder
        from flexiq_django.backend.finding import find_task
        from flexiq_django.conf import find_problems, get_settings

        add_finder(find_task)

        # A wrong setting is reported by the system checks, with its name, rather than here.
        if not find_problems(getattr(settings, "FLEXIQ", {})):
            autodiscover_modules(get_settings().AUTODISCOVER_MODULE)
