"""Two answers to one question, and the reasons for ours."""

from dataclasses import dataclass
from typing import Any

#: Whatever it is: it differs from run to run, or from release to release.
ANY = object()


@dataclass(frozen=True)
class Differs:
    """Two answers to one question, and why ours is another."""

    ours: Any
    reference: Any
    why: str


REFUSED = "a value that cannot mean anything is refused before anything is written"
RESERVED = "what the queue keeps for itself is written by it alone"
BULK = "a key that is held gives the handle of the job that holds it, in bulk as alone"
EDGES = "a graph is easier to draw when each edge comes once"
CASCADE = "however a parent ends, its dependents move: none waits for ever"
HANDLE = "the handle has every field of to_dict() as an attribute"
ORDER = "jobs of one millisecond have an order here: ids grow"
TIMES = "a filter by time takes whole and broken milliseconds and aware datetimes"
CURSOR = "a cursor is signed, so one that this listing did not give is refused"
STATS = "without a name it returns the counts of every queue"
PURGE = "a purge by hand removes the dead job with all that is stored about it"
METADATA = "a replay keeps the metadata; the link stands in the replay history"
REPLAY_ERROR = "the replay history says how the copy ended"
LIMITS = "a limit is judged when it is set, and holds for every worker at once"
REVOKE = "a revoked task takes no new jobs until it is allowed again"
ARCHIVE = "ended jobs stay in sight until they are archived, and leave the counts then"
TIMEOUT = "a worker keeps its own deadlines, whoever looks, and measures the real time"
WAITS = "the last of the listed waits repeats"
STORED = "a limit is stored with the queue: it holds whoever set it, and wherever the worker is"
SCOPE = "every call stays in its namespace; a queue without one is in the namespace default"
LIFETIME = "a job with a lifetime of its own goes with all its records"
FRACTIONS = "seconds may be whole or broken"
CRON = "five fields are the usual ones, and 0 and 7 are Sunday"
ZONE = "a schedule without a zone is in the zone of the project"
ROWS = "every row that is not a handle is a dict"
LIKE = "a text is searched letter for letter, on every database alike"
KNOWN = "queues are also known by their state, by tasks and by live workers"
ASKED = "a job that was asked to stop is cancelled before its body begins"
WORDS = "a level may be given by its word"
UNREADABLE = "what a task returns can be read back or is refused, never changed"
MODULE = "the class of an error is named with its module"
EACH = "everything that was published comes, also what came in the same millisecond"
LEVEL = "what is no level is refused by one error, whatever its sign"
TWINS = "every call that asks the database has an async form"
TASK = "what is enqueued may be a task or its name"
NAMED = "a task that is known in this process brings its options by name too"
OWN = "what a task does not say comes from its queue"
SERVES = "a worker serves every queue of its namespace unless told otherwise"
PAUSED = "a pause holds from the next claim on, also of a worker that has just started"
PLAIN = "metadata that is no JSON object stays as it is"
FENCE = "a result that comes late changes nothing: every attempt has a token of its own"
MIGRATE = "there is one set of migrations, applied by manage.py migrate"
