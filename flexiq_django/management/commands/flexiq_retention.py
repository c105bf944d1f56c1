"""``manage.py flexiq_retention``: what a sweep would delete, and a sweep now."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DjangoDatabaseError

from flexiq_django.api import retention
from flexiq_django.api.windows import windows_of
from flexiq_django.core.ages import as_age
from flexiq_django.core.retention import TABLES, Retention, RetentionPolicy, RetentionPreview
from flexiq_django.core.retention import policy_of as as_policy
from flexiq_django.exceptions import FlexiQError
from flexiq_django.management.durations import FOR_EVER, parse_duration
from flexiq_django.management.given import (
    INTERRUPTED,
    add_scope_arguments,
    ended_by_ctrl_c,
    scope_of,
)
from flexiq_django.management.progress import ProgressBar
from flexiq_django.management.tables import as_moment, table
from flexiq_django.store.scope import Scope
from flexiq_django.worker.connections import gist
from flexiq_django.worker.readiness import require_ready


class Command(BaseCommand):
    """Count or delete history that is older than its window."""

    help = (
        "Show what retention would delete now (preview, the default), or delete it in this process"
        " (sweep). A running worker sweeps by itself: this is for trying windows out, and for doing"
        " it at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", nargs="?", choices=["preview", "sweep"], default="preview")
        for name in TABLES:
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                type=parse_duration,
                metavar="TIME",
                help=f"Keep {name} this long: seconds, 15m, 12h, 7d, or {FOR_EVER}."
                " Default: as configured.",
            )
        parser.add_argument(
            "--dry-run", action="store_true", help="Sweep nothing: same as preview."
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask before deleting.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        add_scope_arguments(parser)

    def handle(self, *args: Any, **given: Any) -> None:
        try:
            with ended_by_ctrl_c():
                self._act(given)
        except (FlexiQError, NotImplementedError) as error:
            raise CommandError(str(error)) from None
        except DjangoDatabaseError as error:
            text = f"the database does not answer as it should ({gist(error)})"
            raise CommandError(text) from None

    def _act(self, given: Mapping[str, Any]) -> None:
        scope = scope_of(given)
        require_ready(scope, lambda verb: verb())
        policy = _policy(scope, given)
        found = retention.preview(scope, policy)
        if given["action"] == "preview" or given["dry_run"]:
            self._show(scope, found, as_json=given["json"])
        else:
            self._sweep(scope, policy, found, as_json=given["json"], is_sure=given["yes"])

    def _show(self, scope: Scope, found: RetentionPreview, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(_plain(scope, found)))
        else:
            self.stdout.write(render(scope, found))

    def _sweep(
        self,
        scope: Scope,
        policy: RetentionPolicy,
        found: RetentionPreview,
        *,
        as_json: bool,
        is_sure: bool,
    ) -> None:
        if as_json and not is_sure:
            raise CommandError("sweep --json needs --yes: there is nobody to ask", returncode=2)
        if not as_json:
            self._show(scope, found, as_json=False)
        if found.total and not is_sure and not self._confirm(found.total):
            raise CommandError("nothing was deleted")
        deleted = dict.fromkeys(TABLES, 0)
        bar = ProgressBar(self.stdout, found.total, is_shown=self.stdout.isatty() and not as_json)
        try:
            for name, count in retention.sweep(scope, policy):
                deleted[name] += count
                bar.advance(count)
        except KeyboardInterrupt:
            bar.end()
            raise CommandError(
                f"stopped after {_rows(sum(deleted.values()))}; run it again to go on",
                returncode=INTERRUPTED,
            ) from None
        bar.end()
        total = sum(deleted.values())
        if as_json:
            answer = {**_plain(scope, found), "deleted": deleted, "deleted_total": total}
            self.stdout.write(json.dumps(answer))
        else:
            self.stdout.write(f"{_rows(total)} deleted")

    def _confirm(self, total: int) -> bool:
        try:
            answer = input(f"Delete {_rows(total)}? They cannot be brought back. [y/N] ")
        except (EOFError, KeyboardInterrupt):
            self.stdout.write("")
            return False
        return answer.strip().lower() in {"y", "yes"}


def render(scope: Scope, found: RetentionPreview) -> str:
    """The preview for people."""
    windows = (
        "recommended windows, as none are configured"
        if found.defaulted
        else ("configured windows" if found.enabled else "no windows")
    )
    rows = [
        (
            name,
            "for ever" if window is None else as_age(window / 1000),
            found.counts[name],
        )
        for name, window in found.windows.items()
    ]
    return "\n".join(
        [
            f"namespace {scope.namespace}, database {scope.using},"
            f" {as_moment(found.reference_time)}; {windows}",
            table("table", ("keeps", "rows to delete"), rows),
            f"\n{_rows(found.total)} to delete",
        ]
    )


def _plain(scope: Scope, found: RetentionPreview) -> dict[str, Any]:
    return {"database": scope.using, **asdict(found)}


def _policy(scope: Scope, given: Mapping[str, Any]) -> RetentionPolicy:
    """The configured windows, with those of the command line in their places."""
    configured = windows_of(scope)
    asked = {name: given[name] for name in TABLES if given.get(name) is not None}
    if not asked:
        return configured
    seconds = {
        name: None if window is None else window / 1000
        for name, window in configured.windows.items()
    }
    wanted = {name: None if value == math.inf else value for name, value in asked.items()}
    return as_policy(Retention(**{**seconds, **wanted}))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
