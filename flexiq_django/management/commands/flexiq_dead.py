"""``manage.py flexiq_dead``: list, show, retry, delete and purge dead letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from flexiq_django.api import options as check
from flexiq_django.api.purging import age_ms, purging_dead
from flexiq_django.api.queue import Queue
from flexiq_django.api.reviving import retry_letters
from flexiq_django.core.ages import as_age
from flexiq_django.management import dead_letters as texts
from flexiq_django.management.counts import whole_number
from flexiq_django.management.durations import parse_age
from flexiq_django.management.given import (
    ProgressLine,
    add_scope_arguments,
    confirm,
    ended_by_ctrl_c,
    plain_errors,
    scope_of,
)
from flexiq_django.store import dead_letters, inspect
from flexiq_django.store.dead_letters import Wanted
from flexiq_django.store.scope import Scope


class Command(BaseCommand):
    """Look at dead letters, and decide what becomes of them."""

    help = "List, show, retry, delete and purge dead letters: jobs that used up their attempts."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        def verb(name: str, told: str, act: Callable[..., None]) -> CommandParser:
            added: CommandParser = verbs.add_parser(name, help=told, description=told)
            added.set_defaults(act=act)
            add_scope_arguments(added)
            return added

        one = verb("list", "List dead letters, the latest failure first.", self._list)
        one.add_argument(
            "--limit", type=whole_number(0), default=20, help="At most so many. Default: 20."
        )
        _add_filters(one)
        _add_json(one, "Print one JSON object a line, for programs.")

        one = verb("show", "Show one dead letter with its arguments and its error.", self._show)
        one.add_argument("ids", nargs=1, metavar="ID", help="The id of the dead letter.")
        _add_json(one, "Print one JSON object, for programs.")

        one = verb("retry", "Put a new job in the place of dead letters.", self._retry)
        one.add_argument("ids", nargs="*", metavar="ID", help="Ids of dead letters.")
        one.add_argument("--all", action="store_true", help="All that there are now.")
        _add_filters(one)

        one = verb("delete", "Delete dead letters; their jobs stay.", self._delete)
        one.add_argument("ids", nargs="+", metavar="ID", help="Ids of dead letters.")
        _add_yes(one)

        one = verb("purge", "Delete old dead letters with their jobs and all records.", self._purge)
        one.add_argument(
            "--older-than",
            type=parse_age,
            required=True,
            metavar="AGE",
            help="Those that failed longer ago: seconds, or a number with s, m, h or d as in 30d.",
        )
        _add_yes(one)

    def handle(self, *args: Any, **given: Any) -> None:
        with ended_by_ctrl_c(), plain_errors():
            given["act"](scope_of(given), given)

    # --- look -------------------------------------------------------------------------------------

    def _list(self, scope: Scope, given: Mapping[str, Any]) -> None:
        found = dead_letters.newest(scope, _wanted(given), limit=given["limit"])
        letters = map(texts.plain, found)
        if not given["json"]:
            self.stdout.write(texts.as_table(letters))
            return
        for each in letters:
            self.stdout.write(texts.as_json(each))

    def _show(self, scope: Scope, given: Mapping[str, Any]) -> None:
        key = check.parse_id(given["ids"][0])
        found = None if key is None else dead_letters.find(scope, key)
        if found is None:
            raise CommandError(_unknown(scope, given["ids"][0]))
        letter = texts.plain_details(found)
        self.stdout.write(texts.as_json(letter) if given["json"] else texts.as_text(letter))

    # --- act --------------------------------------------------------------------------------------

    def _retry(self, scope: Scope, given: Mapping[str, Any]) -> None:
        if bool(given["ids"]) == given["all"]:
            raise CommandError("give ids of dead letters, or --all", returncode=2)
        if given["ids"] and (given["queue"] or given["task"]):
            raise CommandError("--queue and --task choose among --all", returncode=2)
        queue = Queue(scope.namespace, using=scope.using)
        if given["all"]:
            self._retry_all(queue, _wanted(given))
            return

        def retry(dead_id: str) -> None:
            self.stdout.write(f"{dead_id} is retried as job {queue.retry_dead(dead_id)}")

        self._each(given["ids"], retry)

    def _retry_all(self, queue: Queue, wanted: Wanted) -> None:
        retried = stayed = 0
        line = ProgressLine(self.stderr, dead_letters.count(queue.scope, wanted))
        try:
            for ids in dead_letters.oldest_ids(queue.scope, wanted):
                outcome = retry_letters(queue, ids)
                retried += len(outcome.jobs)
                stayed += len(outcome.revoked)
                line.add(len(outcome.jobs))
        finally:
            line.end()
            self.stdout.write(f"{texts.number(retried)} retried")
        if stayed:
            raise CommandError(f"{texts.number(stayed)} stay, as their task is revoked")

    def _delete(self, scope: Scope, given: Mapping[str, Any]) -> None:
        ids = list(dict.fromkeys(given["ids"]))
        question = f"Delete {texts.number(len(ids))}, which can then not be retried?"
        confirm(question, yes=given["yes"])
        queue = Queue(scope.namespace, using=scope.using)

        def delete(dead_id: str) -> None:
            if not queue.delete_dead(dead_id):
                raise CommandError(_unknown(scope, dead_id))
            self.stdout.write(f"{dead_id} deleted")

        self._each(ids, delete)

    def _purge(self, scope: Scope, given: Mapping[str, Any]) -> None:
        seconds = given["older_than"]
        before = inspect.read_clock(scope) - timedelta(milliseconds=age_ms(seconds))
        total = dead_letters.count(scope, Wanted(before=before))
        if total:
            confirm(
                f"Delete {texts.number(total)} that failed more than {as_age(seconds)} ago, with"
                " their jobs and all that is known of them?",
                yes=given["yes"],
            )
        line, removed = ProgressLine(self.stderr, total), 0
        try:
            for count in purging_dead(scope, seconds) if total else ():
                removed += count
                line.add(count)
        finally:
            line.end()
            self.stdout.write(f"{texts.number(removed)} deleted")

    def _each(self, ids: list[str], act: Callable[[str], None]) -> None:
        """Act on one after the other; one that fails stops no other."""
        failed = 0
        for each in ids:
            try:
                with plain_errors():
                    act(each)
            except CommandError as error:
                failed += 1
                self.stderr.write(str(error))
        if failed:
            raise CommandError(f"{failed} of {len(ids)} failed")


def _unknown(scope: Scope, dead_id: str) -> str:
    return f"there is no dead letter {dead_id} in namespace {scope.namespace!r}"


def _wanted(given: Mapping[str, Any]) -> Wanted:
    return Wanted(queue=given["queue"], task_name=given["task"])


def _add_filters(parser: CommandParser) -> None:
    parser.add_argument("--queue", metavar="NAME", help="Only those of this queue.")
    parser.add_argument("--task", metavar="NAME", help="Only those of this task.")


def _add_json(parser: CommandParser, told: str) -> None:
    parser.add_argument("--json", action="store_true", help=told)


def _add_yes(parser: CommandParser) -> None:
    parser.add_argument("--yes", action="store_true", help="Do not ask.")
