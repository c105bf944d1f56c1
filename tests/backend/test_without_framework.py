"""The backend and its checks, whichever framework there is, and where there is none."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from flexiq_django import queue
from tests.backend.conftest import HAS_FRAMEWORK

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder
class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("django.tasks", "django_tasks"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden())
import importlib.util
real = importlib.util.find_spec
def hide(name, package=None):
    return None if name in ("django.tasks", "django_tasks") else real(name, package)
importlib.util.find_spec = hide
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["flexiq_django"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from flexiq_django import queue
job = queue.enqueue("nobody.knows")
from flexiq_django.api.registry import find_elsewhere
assert find_elsewhere(queue.place, "nobody.knows") is None
import flexiq_django.backend
from django.core.exceptions import ImproperlyConfigured
try:
    flexiq_django.backend.FlexiqBackend
except ImproperlyConfigured as error:
    print(error)
"""


def test_without_a_framework_all_else_works_and_the_backend_says_what_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Django 6.0 or newer has one; for Django 5.2 install" in done.stdout


@pytest.mark.skipif(HAS_FRAMEWORK, reason="there is a framework here")
def test_here_there_is_none() -> None:
    from flexiq_django import backend

    with pytest.raises(ImproperlyConfigured, match="django-tasks"):
        _ = backend.FlexiqBackend


EARLY = """
import sys, types
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["early", "flexiq_django"],
    TASKS={"default": {"BACKEND": "flexiq_django.backend.FlexiqBackend"}},
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
early = sys.modules["early"] = types.ModuleType("early")
early.__path__ = [sys.argv[1]]
from flexiq_django.backend.framework import NAME
task = __import__(NAME, fromlist=["task"]).task
def give(): return "early"
give.__module__ = "early"
early.give = task(give)
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
result = early.give.enqueue()
from flexiq_django.testing import run_pending
run_pending()
result.refresh()
print(result.return_value)
"""


@pytest.mark.skipif(not HAS_FRAMEWORK, reason="there is no framework here")
def test_a_task_may_be_declared_before_the_apps_are_ready(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "early\n"


def checked(**params: Any) -> list[str]:
    from flexiq_django.backend import FlexiqBackend

    return [message.id for message in FlexiqBackend("default", params).check()]


@pytest.mark.skipif(not HAS_FRAMEWORK, reason="there is no framework here")
class TestChecks:
    """The system checks of the backend."""

    def test_a_good_configuration_passes(self) -> None:
        options = {
            "DATABASE": "default",
            "NAMESPACE": "n",
            "MAX_RETRIES": 3,
            "TIMEOUT": 2.5,
            "RESULT_TTL": 0,
        }
        assert checked(OPTIONS=options, QUEUES=["a"]) == []
        assert checked(OPTIONS=dict.fromkeys(("DATABASE", "NAMESPACE", "TIMEOUT"))) == []

    @pytest.mark.parametrize(
        "options",
        [
            {"UNKNOWN": 1},
            {"DATABASE": "elsewhere"},
            {"DATABASE": ["default"]},
            {"DATABASE": {}},
            {"DATABASE": 5},
            {"NAMESPACE": ""},
            {"MAX_RETRIES": -1},
            {"MAX_RETRIES": None},
            {"TIMEOUT": 0},
            {"RESULT_TTL": -1},
            ["DATABASE"],
        ],
        ids=str,
    )
    def test_a_bad_option_is_an_error_and_is_refused_on_use(self, options: Any) -> None:
        from flexiq_django.backend import FlexiqBackend
        from flexiq_django.exceptions import ConfigurationError

        assert checked(OPTIONS=options) == ["flexiq.E021"]
        with pytest.raises(ConfigurationError, match=r"TASKS\['default'\]\['OPTIONS'\]"):
            _ = FlexiqBackend("default", {"OPTIONS": options}).flexiq_queue

    @pytest.mark.parametrize("alias", ["elsewhere", ["default"]])
    def test_a_bad_database_says_what_is_allowed(self, alias: Any) -> None:
        from flexiq_django.backend.options import find_problems

        (problem,) = find_problems("default", {"DATABASE": alias})
        assert f"is {alias!r}; allowed is an alias of DATABASES (default" in problem

    def test_the_app_must_be_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(apps, "is_installed", lambda name: False)
        assert checked() == ["flexiq.E020"]

    def test_without_options_jobs_go_to_the_default_queue(self) -> None:
        from flexiq_django.backend import FlexiqBackend

        assert FlexiqBackend("default", {}).flexiq_queue is queue
        apart = FlexiqBackend("default", {"OPTIONS": {"NAMESPACE": "apart"}}).flexiq_queue
        assert apart.place.namespace == "apart"
        again = FlexiqBackend("other", {"OPTIONS": {"NAMESPACE": "apart"}}).flexiq_queue
        assert again is apart
