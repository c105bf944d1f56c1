"""Hosts with a network of their own, on one machine: to be cut off in the middle of a test."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import NoReturn

import pytest

#: A hardware address that no interface has: what is sent there is lost.
_NOWHERE = "02:00:00:00:00:01"


class Host:
    """A network namespace, linked to ours by a cable. What it has of the machine is the rest."""

    def __init__(self, number: int) -> None:
        self._name = f"flexiq-{os.getpid()}-{number}"
        self._cable = f"fq{os.getpid() % 100_000}-{number}"
        # A range set aside for tests between devices: nobody's real network.
        self.network = f"198.18.{number}.0/30"
        self.address = f"198.18.{number}.2"
        #: Where it finds us.
        self.ours = f"198.18.{number}.1"

    def build(self) -> None:
        """Create it. Fails the test in CI, and skips it elsewhere, if that is not permitted."""
        if shutil.which("ip") is None:
            _cannot("the program ip (iproute2) is missing")
        try:
            _ip("netns", "add", self._name)
            _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0",
                "netns", self._name)  # fmt: skip
            _ip("address", "add", f"{self.ours}/30", "dev", self._cable)
            _ip("link", "set", self._cable, "up")
            self._inside("address", "add", f"{self.address}/30", "dev", "eth0")
            self._inside("link", "set", "eth0", "up")
        except subprocess.CalledProcessError as error:
            self.remove()
            _cannot(f"no network namespaces here: {error.stderr.strip()}")

    def remove(self) -> None:
        """Take it away, with its cable. The processes in it live on without a network."""
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("netns", "delete", self._name)
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "delete", self._cable)

    @property
    def prefix(self) -> tuple[str, ...]:
        """What makes a command run there."""
        return ("ip", "netns", "exec", self._name)

    def cut_off(self) -> None:
        """Lose all that is sent from here to there and from there to here, without a word."""
        lost = ("lladdr", _NOWHERE, "nud", "permanent")
        _ip("neighbour", "replace", self.address, *lost, "dev", self._cable)
        self._inside("neighbour", "replace", self.ours, *lost, "dev", "eth0")

    def join_again(self) -> None:
        """Let through what is sent from now on."""
        _ip("neighbour", "delete", self.address, "dev", self._cable)
        self._inside("neighbour", "delete", self.ours, "dev", "eth0")

    def _inside(self, *arguments: str) -> None:
        _ip("-netns", self._name, *arguments)


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts that reach this machine, but not each other."""
    hosts = (Host(1), Host(2))
    try:
        for host in hosts:
            host.build()
        yield hosts
    finally:
        for host in hosts:
            host.remove()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _cannot(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
