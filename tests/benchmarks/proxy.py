"""Counts the statements a PostgreSQL client sends, by standing between it and the server.

Nothing has to be configured on the server, and nothing is missed: each simple query and each
execution of a prepared one is a message that says so.
"""

import contextlib
import re
import select
import socket
import struct
import threading
from collections import Counter
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlencode, urlsplit

_PROTOCOL_3 = 3 << 16
_LITERAL = re.compile(r"'(?:[^']|'')*'")


class CountingProxy:
    """Listens on a free port of this machine; ``statements`` counts by the text's beginning."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        user = parts.netloc.rpartition("@")[0]
        # Encrypted messages cannot be counted.
        query = {**dict(parse_qsl(parts.query)), "sslmode": "disable"}
        self.url = parts._replace(
            netloc=f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}",
            query=urlencode(query),
        ).geturl()
        self.statements: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        reader = _MessageReader(self.statements)
        with client, socket.create_connection(self._server) as server:
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for source in ready:
                    try:
                        data = source.recv(65536)
                    except OSError:
                        return
                    if not data:
                        return
                    if source is client:
                        reader.feed(data)
                        server.sendall(data)
                    else:
                        client.sendall(data)


class _MessageReader:
    """Follows what a client says: enough of the protocol to know which statements it executes."""

    def __init__(self, statements: Counter[str]) -> None:
        self._statements = statements
        self._buffer = b""
        self._has_begun = False
        self._prepared: dict[bytes, str] = {}
        self._bound = ""

    def feed(self, data: bytes) -> None:
        """Take in what was sent, in whatever pieces."""
        self._buffer += data
        while (size := self._size()) is not None and len(self._buffer) >= size:
            message, self._buffer = self._buffer[:size], self._buffer[size:]
            if self._has_begun:
                self._hear(message[:1], message[5:])
            else:
                (code,) = struct.unpack("!I", message[4:8])
                self._has_begun = code >> 16 == _PROTOCOL_3 >> 16

    def _size(self) -> int | None:
        """Bytes of the next message; those before the session begins have no type."""
        offset = 1 if self._has_begun else 0
        if len(self._buffer) < offset + 4:
            return None
        (size,) = struct.unpack("!I", self._buffer[offset : offset + 4])
        return int(size) + offset

    def _hear(self, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            self._statements[_beginning(body)] += 1
        elif kind == b"P":
            name, text = body.split(b"\0", 2)[:2]
            self._prepared[name] = _beginning(text)
        elif kind == b"B":
            self._bound = self._prepared.get(body.split(b"\0", 2)[1], "?")
        elif kind == b"E":
            self._statements[self._bound] += 1


def _beginning(text: bytes) -> str:
    plain = _LITERAL.sub("?", text.rstrip(b"\0").decode(errors="replace"))
    words = " ".join(plain.split())
    return words if len(words) <= 70 else f"{words[:69]}…"
