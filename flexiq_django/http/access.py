"""Who may use the operator surface: a bearer token with the scope, or staff with the permission.

A request that carries a bearer token is judged by the token alone.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from flexiq_django.core.operator import OperatorRules, TokenRules
from flexiq_django.http.answers import RefusedError

logger = logging.getLogger(__name__)

OPERATE = "flexiq_django.operate_queue"
SEE_PAYLOADS = "flexiq_django.view_payload"

_CHALLENGE = 'Bearer realm="flexiq"'
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Who asks. ``name`` is for the log."""

    name: str
    sees_payloads: bool


def identify(request: HttpRequest, rules: OperatorRules) -> Operator:
    """The operator behind a request.

    Raises ``RefusedError``: 401 for nobody, 403 for somebody who may not, 503 where tokens cannot
    be verified.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return _of_token(token.strip(), rules.JWT)
    return _of_session(request)


# --- tokens ---------------------------------------------------------------------------------------


def _of_token(token: str, rules: TokenRules | None) -> Operator:
    if rules is None:
        raise _nobody("bearer tokens are not accepted here", "invalid_token")
    claims = _verified(token, rules)
    scopes = set(_scopes(claims))
    if rules.SCOPE not in scopes:
        raise RefusedError(
            403,
            f"the token lacks the scope {rules.SCOPE}",
            headers={
                "WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope",'
                f' scope="{rules.SCOPE}"'
            },
        )
    return Operator(
        name=f"token of {claims.get('sub', 'nobody')!r}",
        sees_payloads=rules.PAYLOAD_SCOPE in scopes,
    )


def _verified(token: str, rules: TokenRules) -> Mapping[str, Any]:
    try:
        jwt = importlib.import_module("jwt")
    except ImportError:
        raise _unverifiable("PyJWT is not installed") from None
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            rules.KEY,
            algorithms=list(rules.ALGORITHMS),
            audience=rules.AUDIENCE,
            issuer=rules.ISSUER,
            leeway=rules.LEEWAY,
        )
    except jwt.ExpiredSignatureError:
        raise _nobody("the token has expired", "invalid_token") from None
    except jwt.InvalidTokenError:
        # Not why: that would help whoever makes tokens up.
        raise _nobody("the token is not valid", "invalid_token") from None
    except (jwt.PyJWTError, ValueError, TypeError):
        if _has_use(jwt, rules):  # so it is the token that chose another algorithm than it may
            raise _nobody("the token is not valid", "invalid_token") from None
        logger.exception("FLEXIQ['OPERATOR']['JWT'] cannot be used")
        raise _unverifiable("the key is not one for its algorithms") from None
    return claims


def _has_use(jwt: Any, rules: TokenRules) -> bool:
    """Whether the key is one for some of its algorithms."""
    for each in rules.ALGORITHMS:
        with contextlib.suppress(jwt.PyJWTError, NotImplementedError, ValueError, TypeError):
            jwt.PyJWS().get_algorithm_by_name(each).prepare_key(rules.KEY)
            return True
    return False


def _scopes(claims: Mapping[str, Any]) -> Iterator[str]:
    """The scopes of a token, from ``scope`` or ``scopes``: a list, or a text with blanks."""
    for name in ("scope", "scopes"):
        value = claims.get(name)
        if isinstance(value, str):
            yield from value.split()
        elif isinstance(value, list):
            yield from (each for each in value if isinstance(each, str))


def _unverifiable(reason: str) -> RefusedError:
    return RefusedError(503, f"tokens cannot be verified: {reason}")


# --- sessions -------------------------------------------------------------------------------------


def _of_session(request: HttpRequest) -> Operator:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        raise _nobody("log in, or send a bearer token")
    if request.method not in _SAFE and _lacks_csrf_token(request):
        raise RefusedError(403, "the CSRF token is missing or wrong")
    if not (user.is_active and user.is_staff and user.has_perm(OPERATE)):
        raise RefusedError(403, f"this takes a member of staff with the permission {OPERATE}")
    return Operator(name=f"user {user.get_username()!r}", sees_payloads=user.has_perm(SEE_PAYLOADS))


def _lacks_csrf_token(request: HttpRequest) -> bool:
    # The views are exempt, as a token needs no such check; so this is the check for sessions, by
    # the very middleware that the project would use, also where it has left it out.
    check = CsrfViewMiddleware(lambda request: HttpResponse())
    check.process_request(request)
    return check.process_view(request, _checked, (), {}) is not None


def _checked(request: HttpRequest) -> HttpResponse:
    """Stands for the view: one that is not exempt."""
    return HttpResponse()


def _nobody(detail: str, error: str | None = None) -> RefusedError:
    challenge = _CHALLENGE if error is None else f'{_CHALLENGE}, error="{error}"'
    return RefusedError(401, detail, headers={"WWW-Authenticate": challenge})
