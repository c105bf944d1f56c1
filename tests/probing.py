"""Ask a worker's health endpoint as a probe would."""

import json
import urllib.error
import urllib.request
from typing import Any

from tests.processes import WorkerProcess


class Probe:
    """The endpoint of one worker that was started with `--health-port 0`."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.port = int(worker.wait_for_log(r"probes are answered on port (\d+)")[1])

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status and the body."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def status(self, path: str) -> int:
        """The status alone."""
        return self.ask(path)[0]

    def reasons(self, path: str) -> list[str]:
        """What the answer complains of."""
        found: list[str] = self.ask(path)[1]["reasons"]
        return found
