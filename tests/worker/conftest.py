"""What the tests of the settler share."""

import pytest

from tests.worker.desk import Desk


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)
