"""What the metadata of a job says of the dead letters it came back from.

The columns of the job are the truth; this is what people and programs read. The caller's own text
is kept to the letter, so only a JSON object, or nothing, can take the two entries.
"""

from __future__ import annotations

import json
import re
from uuid import UUID

RETRY_COUNT = "__dlq_retry_count"
ORIGIN = "__origin_job_id"

#: The two entries of the time before, which are always the last ones.
_MARK = re.compile(rf',?\s*"{RETRY_COUNT}": \d+, "{ORIGIN}": "[0-9a-f-]{{36}}"\}}$')


def mark_chain(metadata: str | None, *, retries: int, origin: UUID) -> str | None:
    """Metadata with how often the chain of jobs was retried, and the id of its first job.

    Metadata that is no JSON object stays as it is.
    """
    mark = f'"{RETRY_COUNT}": {retries}, "{ORIGIN}": "{origin}"}}'
    if metadata is None:
        return f"{{{mark}"
    if not _is_object(metadata):
        return metadata
    open_object = _MARK.sub("}", metadata.rstrip())[:-1].rstrip()
    comma = "" if open_object.endswith("{") else ", "
    return f"{open_object}{comma}{mark}"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
