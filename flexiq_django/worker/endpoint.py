"""The HTTP endpoint for probes: ``/live`` and ``/ready``, and nothing else."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from flexiq_django.exceptions import ConfigurationError
from flexiq_django.worker.verdict import Judge, Verdict

logger = logging.getLogger(__name__)

#: Seconds a client may take to send its request.
REQUEST_SECONDS = 5.0


class HealthEndpoint:
    """Serves the verdicts of a judge on a thread of its own.

    Bound when it is made: raises ``ConfigurationError`` where the address cannot be had.
    """

    def __init__(self, host: str, port: int, judge: Judge) -> None:
        try:
            self._server = _Server(host, port, judge)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigurationError(
                f"cannot answer probes on {host} port {port}: {reason}"
            ) from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="flexiq-health", daemon=True
        )

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()
        logger.info("probes are answered on port %s: /live and /ready", self.port)

    def stop(self) -> None:
        """End, and give the port back."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, judge: Judge) -> None:
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.answers: dict[str, Callable[[], Verdict]] = {
            "/live": judge.live,
            "/ready": judge.ready,
        }
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # Not the one of HTTPServer, which asks DNS for a name that nobody needs.
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or worse, is no news."""
        logger.debug("a probe failed: %r", sys.exception())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_SECONDS
    error_content_type = "application/json"
    error_message_format = '{"status": "refused"}\n'

    def do_GET(self) -> None:
        """Answer a probe."""
        ask = self.server.answers.get(self.path.partition("?")[0])
        if ask is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        verdict = ask()
        body = json.dumps({
            "status": "failing" if verdict.reasons else "ok",
            "reasons": list(verdict.reasons),
            "turn_age_seconds": round(verdict.turn_age, 3),
            "processes": verdict.processes,
        }).encode()  # fmt: skip
        self.send_response(HTTPStatus.SERVICE_UNAVAILABLE if verdict.reasons else HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name is the protocol's

    def version_string(self) -> str:
        """No versions for strangers."""
        return "flexiq"

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds."""
        logger.debug(format, *args)
