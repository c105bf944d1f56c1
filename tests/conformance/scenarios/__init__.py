"""Facts about the calls that both packages have. Imports neither: each brings a ``Bench``.

A scenario returns its facts by label; ``expected.py`` says what they are. The imports are relative,
as the reference's interpreter knows this package by another name.
"""

from .bench import Bench, Facts
from .dead_letters import dead_letters, replays
from .jobs import (
    asked_to_stop,
    calling,
    dependencies,
    document,
    failure_classes,
    failures,
    input_that_is_refused,
    order,
    results,
    retries,
    running,
    too_late,
    unique_keys,
    what_each_call_does_by_status,
)
from .keeping import contract, namespaces, retention, settings
from .queues import archive, purges, queues
from .reading import figures, listings

SCENARIOS = (
    what_each_call_does_by_status,
    input_that_is_refused,
    unique_keys,
    dependencies,
    failures,
    running,
    asked_to_stop,
    retries,
    calling,
    order,
    results,
    failure_classes,
    too_late,
    document,
    listings,
    figures,
    dead_letters,
    replays,
    queues,
    purges,
    archive,
    retention,
    settings,
    contract,
    namespaces,
)

__all__ = ["SCENARIOS", "Bench", "Facts"]
