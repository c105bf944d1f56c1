"""The reference is complete: settings, commands, options, public names, signals, exceptions."""

import ast
import dataclasses
import inspect
import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path
from typing import Any

import pytest
from django.core.management import BaseCommand, load_command_class
from django.dispatch import Signal

import flexiq_django
from flexiq_django import (
    JobResult,
    JobStatus,
    MisfirePolicy,
    Queue,
    Task,
    db,
    exceptions,
    signals,
    testing,
)
from flexiq_django.api.context import CurrentJob
from flexiq_django.api.jobs import EnqueueOptions
from flexiq_django.api.result import FIELDS
from flexiq_django.backend.options import BackendOptions
from flexiq_django.conf import Settings
from flexiq_django.testing import pytest_plugin
from tests.docs.pages import DOCS, ROOT, all_pages, read_rows, read_section

REFERENCE = DOCS / "reference"
COMMANDS = ROOT / "flexiq_django" / "management" / "commands"


def code_words(*pages: Path) -> set[str]:
    """Everything that stands in backticks, without brackets and arguments."""
    text = "\n".join(page.read_text() for page in pages)
    return {word.partition("(")[0] for word in re.findall(r"`([^`\n]+)`", text)}


def public_members(owner: type) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def test_the_settings_table_is_the_settings() -> None:
    documented = {
        cells[0].strip("`"): ast.literal_eval(cells[1].strip("`"))
        for cells in read_rows(REFERENCE / "settings.md")
        if re.fullmatch(r"`[A-Z_]+`", cells[0])
    }
    actual = {field.name: field.default for field in dataclasses.fields(Settings)}
    assert documented == actual


def command_names() -> list[str]:
    return sorted(path.stem for path in COMMANDS.glob("flexiq_*.py"))


def options_of(command: BaseCommand) -> set[str]:
    """The command's own options, without those every Django command has."""

    everyone = all_options(BaseCommand().create_parser("manage.py", "any"))
    own = all_options(command.create_parser("manage.py", "this")) - everyone
    return {flag for flag in own if flag.startswith("--")}


def all_options(parser: ArgumentParser) -> set[str]:
    """The options of a command and of its verbs."""
    found: set[str] = set()
    for action in parser._actions:
        found.update(action.option_strings)
        if isinstance(action, _SubParsersAction):
            found.update(*(all_options(verb) for verb in action.choices.values()))
    return found


@pytest.mark.parametrize("name", command_names())
def test_every_option_of_a_command_is_documented_and_no_other(name: str) -> None:
    section = read_section(REFERENCE / "commands.md", name)
    documented = set(re.findall(r"^\| `(--[a-z-]+)", section, re.M))
    assert documented == options_of(load_command_class("flexiq_django", name))


def test_commands_and_options_on_all_pages_exist() -> None:
    wrong = []
    for page in all_pages():
        for call in re.finditer(r"manage\.py (flexiq_\w+)([^\n`|<]*)", page.read_text()):
            name, rest = call.groups()
            if name not in command_names():
                wrong.append(f"{page.name}: there is no command {name}")
                continue
            parser = load_command_class("flexiq_django", name).create_parser("manage.py", name)
            known = all_options(parser)
            for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
                if option not in known:
                    wrong.append(f"{page.name}: {name} has no option {option}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", flexiq_django.__all__)
def test_public_names_have_docstrings_and_a_place_in_the_reference(name: str) -> None:
    value: Any = getattr(flexiq_django, name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    assert name in code_words(*REFERENCE.glob("*.md")), f"{name} is not in docs/reference/"


def test_every_name_of_the_low_level_module_is_in_its_reference() -> None:
    text = (REFERENCE / "db.md").read_text()
    for name in db.__all__:
        assert inspect.getdoc(getattr(db, name)), f"{name} has no docstring"
        assert re.search(rf"\b{name}\b", text), f"{name} is not in docs/reference/db.md"


def test_every_helper_for_tests_is_in_its_reference() -> None:
    text = (REFERENCE / "testing.md").read_text()
    fixtures = [name for name in vars(pytest_plugin) if name.startswith("flexiq_")]
    assert len(fixtures) == 3
    for name in [*testing.__all__, *fixtures]:
        assert inspect.getdoc(getattr(testing, name, None) or getattr(pytest_plugin, name))
        assert re.search(rf"\b{name}\b", text), f"{name} is not in docs/reference/testing.md"


def test_every_option_of_the_backend_is_explained() -> None:
    words = code_words(DOCS / "howto" / "django-tasks.md")
    for name in BackendOptions.__dataclass_fields__:
        assert f'OPTIONS["{name}"]' in words


def test_every_method_of_queue_and_task_is_in_the_reference() -> None:
    text = (REFERENCE / "python.md").read_text()
    internal = {
        "place",
        "has_windows",
        "retention_policy",
        "scope",
        "defaults",
        "max_depths",
        "follows_settings",
        "tasks",
        "schedules",
        "function",
        "name",
        "options",
        "queue",
    }
    missing = sorted(
        name
        for name in (public_members(Queue) | public_members(Task)) - internal
        if not re.search(rf"(\b|`){name}\b", text)
    )
    assert not missing


def test_every_attribute_of_a_handle_is_in_the_reference() -> None:
    own = public_members(JobResult)
    missing = set(FIELDS) - own - code_words(REFERENCE / "python.md")
    assert not missing
    undocumented = {name for name in own if not inspect.getdoc(getattr(JobResult, name))}
    assert not undocumented


@pytest.mark.parametrize("name", sorted(EnqueueOptions.__annotations__))
def test_every_enqueue_option_is_explained(name: str) -> None:
    assert name in code_words(DOCS / "howto" / "enqueue.md")


def test_every_member_of_current_job_is_explained() -> None:
    assert public_members(CurrentJob) <= code_words(DOCS / "howto" / "long-jobs.md")


def test_statuses_and_policies_are_explained() -> None:
    assert {each.value for each in JobStatus} <= code_words(REFERENCE / "python.md")
    schedules = (DOCS / "howto" / "schedules.md").read_text()
    assert all(f'`"{each.value}"`' in schedules for each in MisfirePolicy)


def test_the_checks_table_is_the_checks() -> None:
    documented = {cells[0].strip("`") for cells in read_rows(REFERENCE / "checks.md")} - {"Id"}
    source = "".join(
        path.read_text()
        for room in ("checks", "backend")
        for path in sorted((ROOT / "flexiq_django" / room).glob("*.py"))
    )
    assert documented == set(re.findall(r'id="(flexiq\.[EWI]\d{3})"', source))


def test_the_signals_table_is_the_signals() -> None:
    documented = {cells[0].strip("`") for cells in read_rows(REFERENCE / "signals.md")} - {"Signal"}
    assert documented == {
        name for name, value in vars(signals).items() if isinstance(value, Signal)
    }


def test_every_exception_is_named() -> None:
    raised = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and issubclass(value, exceptions.FlexiQError)
    }
    assert raised - {"JobFailure", "TaskTimeoutError"} <= code_words(REFERENCE / "exceptions.md")
