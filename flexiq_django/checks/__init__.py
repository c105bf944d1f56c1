"""System checks: what is wrong with the settings, the database or the set-up, and what to do.

Errors are ``flexiq.E...``, warnings ``flexiq.W...``, notes ``flexiq.I...``. Those that have to ask
a database run with ``manage.py check --database ALIAS``, and whenever ``migrate`` runs: so what a
migration cures is no error.
"""

from __future__ import annotations

from flexiq_django.checks.database import check_database
from flexiq_django.checks.project import (
    check_alias,
    check_auto_retry,
    check_router,
    check_settings,
    check_transactional_tasks,
    check_twin,
)

__all__ = [
    "check_alias",
    "check_auto_retry",
    "check_database",
    "check_router",
    "check_settings",
    "check_transactional_tasks",
    "check_twin",
]
