"""Do what the documentation of tasks says, with its own words."""

import re
import subprocess
import sys
import tarfile

from project import Project, need


class Words:
    """The code blocks of a page; each is to be used."""

    def __init__(self, blocks: list[str]) -> None:
        self.blocks = blocks
        self.used: set[int] = set()

    def take(self, *parts: str, without: str = "\0") -> str:
        """The block that has these parts."""
        for number, block in enumerate(self.blocks):
            if number not in self.used and all(part in block for part in parts):
                if without in block:
                    continue
                self.used.add(number)
                return block
        sys.exit(f"the documentation has no (more) code with {parts}: has it changed?")

    def rest(self) -> list[str]:
        """The blocks that nobody took."""
        return [each for number, each in enumerate(self.blocks) if number not in self.used]


def django_words(project: Project) -> Words:
    """The topic guide, from the source distribution of the very version installed."""
    version = project.run("-m", "django", "--version").strip()
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
         "--dest", project.folder, f"django=={version}"],
        check=True,
    )  # fmt: skip
    (archive,) = project.folder.glob("[dD]jango-*.tar.gz")
    with tarfile.open(archive) as files:
        (name,) = [each for each in files.getnames() if each.endswith("/docs/topics/tasks.txt")]
        member = files.extractfile(name)
        text = member.read().decode() if member else ""
    blocks, lines = [], text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(".. code-block::") or (line.endswith("::") and line[:2] != ".."):
            block = []
            for following in lines[number + 1 :]:
                if following.strip() and not following.startswith("    "):
                    break
                block.append(following[4:])
            blocks.append("\n".join(block).strip() + "\n")
    return Words(blocks)


def readme_words(project: Project) -> Words:
    """The README of the backport, which its distribution carries."""
    metadata = next((project.folder / "venv").rglob("django_tasks-*.dist-info/METADATA"))
    text = metadata.read_text()
    return Words([block.strip() + "\n" for block in re.findall(r"```python\n(.*?)```", text, re.S)])


def commands(block: str) -> list[str]:
    """What a session types."""
    return [line[4:] for line in block.splitlines() if line.startswith(">>> ")]


def follow_django(project: Project) -> dict[str, object]:
    """Do what the guide says; the arguments for the task of the view."""
    words = django_words(project)
    plain = words.take("@task\ndef email_users(emails")
    special = words.take("@task(priority=2")
    context = words.take("takes_context=True")
    for name, text in (("plain", plain), ("special", special), ("context", context)):
        project.write(f"things/{name}.py", text)
    project.write("things/views_tasks.py", context + "\n\ntask_of_the_view = email_users\n")
    dictionary = words.take("def double_dictionary")
    example = words.take("def my_task(thing_num)")
    function, _, block = example.partition("\n\n\nwith ")
    project.write(
        "things/tasks.py",
        "from django.tasks import task\n\nfrom things.models import Thing\n\n\n"
        f"{dictionary}\n\n@task\ndef process_data(moment):\n    pass\n\n\n{function}\n",
    )
    enqueue = words.take("result = email_users.enqueue(")
    priorities = commands(words.take(">>> email_users.priority"))
    refused = commands(words.take(">>> process_data.enqueue"))
    doubled = commands(words.take(">>> result = double_dictionary"))
    before = f"""
import subprocess, sys
from datetime import datetime
from django.db import transaction
from things.models import Thing
from things.tasks import double_dictionary, my_task, process_data
import things.context, things.plain, things.special

{words.take('task_backends["reserve"]')}
for module in (things.plain, things.special, things.context):
    email_users = module.email_users
{_indented(enqueue)}
    told[module.__name__] = result.id
    told["status"] = str(result.status)
email_users = things.plain.email_users
told["priorities"] = [{", ".join(priorities)}]
try:
    {refused[0]}
except TypeError:
    told["refused"] = True
{doubled[0]}
told["doubled"] = result.id
with {block}
subprocess.run([sys.executable, "manage.py", "flexiq_worker", "--burst"], check=True)
Thing.objects.all().delete()
{words.take("transaction.on_commit(")}
"""
    told = project.shell(before)
    need(told["status"], "READY", "the status of a new result")
    need(told["priorities"], [0, 10], "priorities")
    need(told["refused"], True, "a datetime is refused")
    project.work()
    refresh = commands(words.take(">>> result.refresh()"))
    value = commands(words.take(">>> result.return_value\n42"))
    error = commands(words.take(">>> result.errors[0].exception_class"))
    after = f"""
{words.take("from django.tasks import default_task_backend", without=">>>")}
results = {{}}
for name in ("plain", "special", "context"):
    result_id = ids["things." + name]
    email_users = __import__("things." + name, fromlist=["x"]).email_users
    {words.take("email_users.get_result(result_id)").splitlines()[-1]}
    {refresh[1]}
    results[name] = [str({refresh[0]}), {value[1]}]
result_id = ids["doubled"]
{words.take("default_task_backend.get_result(result_id)")}
results["doubled"] = [str({doubled[1]}), {doubled[2]}.splitlines()[-1], repr({error[0]})]
from flexiq_django import queue
results["my_task"] = [
    job.status for job in queue.list_jobs() if job.task_name == "things.tasks.my_task"
]
told.update(results)
"""
    told = project.shell(after, ids=told)
    for name in ("plain", "special", "context"):
        need(told[name], ["SUCCESSFUL", 1], f"email_users of things/{name}.py")
    need(
        told["doubled"],
        ["FAILED", "TypeError: unhashable type: 'list'", "<class 'TypeError'>"],
        "double_dictionary",
    )
    need(sorted(told["my_task"]), ["complete", "complete"], "my_task")  # type: ignore[call-overload]
    left = [
        each for each in words.rest() if "BACKEND" not in each and "backend.results" not in each
    ]
    sys.stdout.write(f"followed Django's guide; {len(left)} blocks only show what others did\n")
    return {"emails": ["ada@example.org"], "subject": "s", "message": "m"}


def follow_readme(project: Project) -> dict[str, object]:
    """Do what the README says; the arguments for the task of the view."""
    words = readme_words(project)
    plain, context = words.take("@task()\ndef calc"), words.take("@task(takes_context=True)")
    project.write("things/tasks.py", plain + "\n\n@task()\ndef fail():\n    raise ValueError\n")
    project.write("things/context.py", context)
    project.write(
        "things/views_tasks.py",
        "from things.tasks import calculate_meaning_of_life as task_of_the_view  # noqa: F401\n",
    )
    fetch = words.take("result_id = result.id")
    before = f"""
import things.context
from things.tasks import calculate_meaning_of_life, fail
{words.take("modified_task =")}
modified_task.enqueue()
told["context"] = things.context.calculate_meaning_of_life.enqueue().id
told["fail"] = fail.enqueue().id
{words.take("result = calculate_meaning_of_life.enqueue()")}
{fetch}
told["result"] = result_id
import pickle
{words.take("default_task_backend.get_result(result_id)")}
{words.take("supports_get_result")}
import subprocess
from django_tasks import TaskResultStatus
result = calculate_meaning_of_life.get_result(result_id)
waiting = {words.take("result.refresh()")!r}
before, _, after = waiting.partition("result.refresh()")
exec(before)
subprocess.run([sys.executable, "manage.py", "flexiq_worker", "--burst"], check=True)
exec("result.refresh()" + after)
{words.take("assert result.return_value == 42")}
assert things.context.calculate_meaning_of_life.get_result(told["context"]).return_value == 42
result = fail.get_result(told["fail"])
{words.take("exception_class == ValueError")}
{words.take("isinstance(result.errors[0].traceback, str)")}
"""
    project.shell("import sys\n" + before)
    sys.stdout.write("followed the README of the backport\n")
    return {}


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.splitlines())
