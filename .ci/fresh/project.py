"""The project and the interpreter it has for itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

SETTINGS = """
INSTALLED_APPS += ["things", "flexiq_django"{backport}]
TASKS = {{
    alias: {{"BACKEND": "flexiq_django.backend.FlexiqBackend", "QUEUES": []}}
    for alias in ("default", "reserve")
}}
{mail}
"""

MODELS = """
from django.db import models


class Thing(models.Model):
    num = models.IntegerField()
"""

URLS = """
from django.http import JsonResponse

from things.slow import slow
from things.views_tasks import task_of_the_view


def start(request):
    return JsonResponse({"id": task_of_the_view.enqueue(**json.loads(request.GET["with"])).id})


def start_slow(request):
    return JsonResponse({"id": slow.enqueue().id})


def show(request, result_id):
    from flexiq_django.backend.framework import task_backends

    result = task_backends["default"].get_result(result_id)
    value = result.return_value if str(result.status) == "SUCCESSFUL" else None
    return JsonResponse({"status": str(result.status), "value": value, "tries": result.attempts})


import json

urlpatterns += [
    path("start/", start), path("slow/", start_slow), path("show/<result_id>/", show)
]
"""

#: The first attempt lasts for as long as the worker lives.
SLOW = """
import time
from pathlib import Path

from {package} import task


@task(takes_context=True)
def slow(context):
    if context.attempt == 1:
        Path("slow-has-begun").touch()
        time.sleep(600)
    return context.attempt
"""


class Project:
    """The project and its interpreter."""

    def __init__(self, folder: Path, wheel: str, version: str) -> None:
        self.folder = folder
        self.version = version
        self.has_backport = version == "5.2"
        self.package = "django_tasks" if self.has_backport else "django.tasks"
        self.python = folder / "venv" / "bin" / "python"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if "DJANGO" not in name and name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        backport = ["django-tasks"] if self.has_backport else []
        self.run("-m", "pip", "install", "-q", wheel, f"django=={version}.*", *backport)
        self.site = folder / "site"
        self.site.mkdir()
        self.run("-m", "django", "startproject", "mysite", ".")
        self.manage("startapp", "things")

    def run(self, *arguments: object) -> str:
        """Run Python with the arguments; what it printed."""
        where = getattr(self, "site", self.folder)
        done = subprocess.run(
            [self.python, *map(str, arguments)],
            cwd=where, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=300,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{arguments} exited with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def manage(self, *arguments: str) -> str:
        """Run ``manage.py``."""
        return self.run("manage.py", *arguments)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start ``manage.py`` in the background."""
        with (self.site / f"{arguments[0]}.log").open("ab") as log:
            return subprocess.Popen(
                [self.python, "manage.py", *arguments],
                cwd=self.site, env=self.environment, stdout=log, stderr=log,
            )  # fmt: skip

    def shell(self, code: str, **names: object) -> dict[str, object]:
        """Run code with Django set up; the dict ``told`` it leaves."""
        program = (
            "import django, json, os, sys\n"
            "os.environ['DJANGO_SETTINGS_MODULE'] = 'mysite.settings'\n"
            "django.setup()\n"
            "names = {'told': {}, '__name__': 'shell', **json.loads(sys.argv[2])}\n"
            "exec(sys.argv[1], names)\n"
            "print('\\n' + json.dumps(names['told']))\n"
        )
        printed = self.run("-c", program, code, json.dumps(names))
        return json.loads(printed.splitlines()[-1])

    def write(self, path: str, text: str, *, append: bool = False) -> None:
        """Write a file of the project."""
        with (self.site / path).open("a" if append else "w") as file:
            file.write(text)

    def work(self) -> None:
        """Let a worker run what there is."""
        self.manage("flexiq_worker", "--burst")

    def set_up(self) -> None:
        """The one app, the one setting, the tables."""
        backend = "django.core.mail.backends.console.EmailBackend"
        self.write(
            "mysite/settings.py",
            SETTINGS.format(
                backport=', "django_tasks"' if self.has_backport else "",
                mail=f'MAILERS = {{"default": {{"BACKEND": "{backend}"}}}}'
                if self.version >= "6.1"
                else f'EMAIL_BACKEND = "{backend}"',
            ),
            append=True,
        )
        self.write("things/models.py", MODELS)
        self.write("things/slow.py", SLOW.format(package=self.package))
        self.write("mysite/urls.py", URLS, append=True)
        self.manage("makemigrations", "things")
        self.manage("migrate")
        self.manage("check", "--database", "default")


def need(found: object, wanted: object, what: str) -> None:
    """End here if something is not as it should be."""
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")
