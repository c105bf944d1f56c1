"""What the setting ``OPERATOR`` may say: whether the HTTP surface is on, and whose tokens it takes.

Problems name keys and never values: one of the values is a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

#: Algorithms with a shared secret and its least length in bytes; algorithms with a pair of keys.
SECRET_ALGORITHMS = {"HS256": 32, "HS384": 48, "HS512": 64}
KEY_PAIR_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
#: The kind of public key that an algorithm takes, by its first two letters.
_KEY_KINDS = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "Ed"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRules:
    """What a bearer token must be like. ``KEY`` is the shared secret or the public key (PEM)."""

    KEY: str = field(repr=False)
    ALGORITHMS: tuple[str, ...]
    AUDIENCE: str | None = None
    ISSUER: str | None = None
    #: The scope that lets a token in, and the one that shows it payloads.
    SCOPE: str = "admin"
    PAYLOAD_SCOPE: str = "view_payload"
    #: Seconds that the clock of whoever issues tokens may be off.
    LEEWAY: float = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorRules:
    """The setting in force. Without ``JWT`` only sessions are let in."""

    ENABLED: bool = False
    JWT: TokenRules | None = None


def read_rules(given: Mapping[str, Any] | None) -> OperatorRules:
    """The rules that a value without problems stands for; ``None`` switches the surface off."""
    wanted = dict(given or {})
    token = wanted.pop("JWT", None)
    if token is None:
        return OperatorRules(**wanted)
    algorithms = tuple(token["ALGORITHMS"])
    return OperatorRules(**wanted, JWT=TokenRules(**{**token, "ALGORITHMS": algorithms}))


def find_problems(given: Any) -> Iterator[str]:
    """What is wrong with a value of ``OPERATOR``, a sentence each."""
    name = "FLEXIQ['OPERATOR']"
    if given is None:
        return
    unknown = _unknown(name, given, OperatorRules)
    if unknown:
        yield unknown
        return
    if not isinstance(given.get("ENABLED", False), bool):
        yield f"{name}['ENABLED'] must be True or False."
    token = given.get("JWT")
    if token is not None:
        name = f"{name}['JWT']"
        unknown = _unknown(name, token, TokenRules)
        if unknown:
            yield unknown
        else:
            yield from _token_problems(name, token)


def _unknown(name: str, given: Any, rules: type[OperatorRules | TokenRules]) -> str | None:
    if not isinstance(given, dict):
        return f"{name} is a {type(given).__name__}; it must be a dict, or None."
    known = [each.name for each in fields(rules)]
    unknown = sorted(str(key) for key in given if key not in known)
    if not unknown:
        return None
    return f"{name} has unknown keys {', '.join(unknown)}; known are {', '.join(known)}."


def _token_problems(name: str, token: Mapping[str, Any]) -> Iterator[str]:
    key = token.get("KEY")
    if not _is_name(key):
        yield f"{name}['KEY'] must be the shared secret or the public key (PEM), as text."
    yield from _algorithm_problems(name, token.get("ALGORITHMS"), key)
    for one in ("AUDIENCE", "ISSUER"):
        if token.get(one) is not None and not _is_name(token[one]):
            yield f"{name}[{one!r}] must be a text, or None."
    for one in ("SCOPE", "PAYLOAD_SCOPE"):
        scope = token.get(one, "scope")
        if not isinstance(scope, str) or [scope] != scope.split():
            yield f"{name}[{one!r}] must be one word."
    leeway = token.get("LEEWAY", 0)
    if isinstance(leeway, bool) or not isinstance(leeway, int | float) or not 0 <= leeway <= 300:
        yield f"{name}['LEEWAY'] must be a number of seconds from 0 to 300."


def _algorithm_problems(name: str, algorithms: Any, key: Any) -> Iterator[str]:
    is_list = isinstance(algorithms, list | tuple) and len(algorithms) > 0
    if not is_list or not all(isinstance(each, str) for each in algorithms):
        yield f"{name}['ALGORITHMS'] must be a list of algorithms, such as ['RS256']."
    elif set(algorithms) <= set(SECRET_ALGORITHMS):
        least = max(SECRET_ALGORITHMS[each] for each in algorithms)
        if _is_name(key) and len(key.encode()) < least:
            yield f"{name}['KEY'] is too short for its algorithms: at least {least} bytes."
    elif not set(algorithms) <= KEY_PAIR_ALGORITHMS:
        # Both kinds in one list would take a public key, which is no secret, for a secret.
        yield (
            f"{name}['ALGORITHMS'] must all be among {', '.join(SECRET_ALGORITHMS)}, or all among"
            f" {', '.join(sorted(KEY_PAIR_ALGORITHMS))}."
        )
    elif len({_KEY_KINDS[each[:2]] for each in algorithms}) > 1:
        yield (
            f"{name}['ALGORITHMS'] must all take the same kind of key, as there is one KEY: RS* and"
            " PS*, or ES*, or EdDSA."
        )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
