"""Docstrings are written for readers of the code: their cross-references become plain code here."""

import re
from typing import Any

_ROLE = re.compile(r":(?:meth|class|func|attr|mod|exc):(?=<code>)")


def on_page_content(html: str, **_: Any) -> str:
    """Take the role off ``:meth:`enqueue```, which Markdown shows as it stands."""
    return _ROLE.sub("", html)
