"""Amounts of memory on a command line, and the system that has no /proc."""

import argparse
import logging
import resource

import pytest

from flexiq_django.management.sizes import parse_size
from flexiq_django.worker import memory
from flexiq_django.worker.memory import MIB, MemoryLimit


@pytest.mark.parametrize(
    ("text", "size"),
    [("512", 512 * MIB), ("512M", 512 * MIB), ("1g", 1024 * MIB), ("1.5GiB", 1536 * MIB),
     ("2048 KB", 2 * MIB)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "lots", "1T", "1e3", "M", "0.0000001K", "512MM", "1048577G", "9" * 400]
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no size; allowed are"):
        parse_size(text)


def test_without_proc_the_peak_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", "/nowhere/statm")
    monkeypatch.setattr(memory.sys, "platform", "freebsd")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert memory.resident_bytes() >= peak * 1024


def test_it_is_looked_at_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    looks = iter([100 * MIB, 300 * MIB])
    limit = MemoryLimit(200 * MIB, lambda: next(looks))

    assert [limit.is_exceeded() for _ in range(1000)] == [False] * 1000
    limit._next_look = 0.0
    with caplog.at_level(logging.WARNING, "flexiq_django"):
        assert limit.is_exceeded()
    assert "resident memory is 300 MiB, more than the 200 MiB allowed" in caplog.text
    assert not MemoryLimit(None, lambda: next(looks)).is_exceeded()
