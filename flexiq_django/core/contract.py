"""The contract level: which revision of the stored rows a build understands.

A later build that stores rows in a way this one would misread raises the level. A deployment then
sets the floor, the lowest level a process may speak, and older builds refuse to work.
"""

from __future__ import annotations

import re

from flexiq_django.exceptions import ContractError, InvalidOptionError

#: The level of this build. Level 1 was never released.
LEVEL = 2
#: The oldest level whose rows this build can read.
OLDEST = 2

#: The setting that holds the floor.
FLOOR_KEY = "contract:min_sdk"


def is_level(text: str) -> bool:
    """Whether a stored floor can be read."""
    return re.fullmatch(r"[0-9]{1,9}", text) is not None


def parse_floor(text: str | None, *, using: str) -> int:
    """The floor from its stored text; the oldest level where none is stored.

    Raises ``ContractError`` where the text is no level: nobody can tell what it would forbid.
    """
    if text is None:
        return OLDEST
    if not is_level(text):
        raise ContractError(
            f"the setting {FLOOR_KEY} in database {using!r} is {text[:50]!r}, which is no contract"
            " level, so this build cannot tell whether it may read the rows: store the right level"
            f" with set_min_contract(), or upgrade flexiq_django (this build speaks level {LEVEL})"
        )
    return int(text)


def require_level(floor: int, *, using: str) -> None:
    """Raises ``ContractError`` if this build is below the floor."""
    if floor > LEVEL:
        raise ContractError(
            f"database {using!r} asks for contract level {floor} or newer, and this build of"
            f" flexiq_django speaks level {LEVEL}: upgrade flexiq_django in this process"
        )


def check_level(level: object) -> int:
    """A level that this build may set as the floor. Raises ``InvalidOptionError``."""
    if not isinstance(level, int) or isinstance(level, bool) or not OLDEST <= level <= LEVEL:
        raise InvalidOptionError(
            f"level is {level!r}; allowed is a whole number from {OLDEST} (the oldest this build"
            f" can read) to {LEVEL} (its own)"
        )
    return level
