"""The settings of the tests, in a worker whose claim loop can be made to hang.

What makes a real loop hang (a connection that is dead without anybody knowing, a lock that somebody
forgot) cannot be had on every database, so a callback in the loop's own thread stands for it.
"""

import os

from tests.flows.gates import Gate
from tests.settings import *  # noqa: F403

_gate = Gate(os.environ["FLEXIQ_TEST_GATE"])


def block(**_: object) -> None:
    """Wait at the gate, in the main thread, once the worker has started."""
    _gate.pass_through("loop")


from flexiq_django import signals  # noqa: E402 - needs nothing of Django's

signals.worker_started.connect(block)
