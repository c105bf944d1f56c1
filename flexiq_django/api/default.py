"""The project's default queue, configured by the ``FLEXIQ`` setting."""

from __future__ import annotations

from flexiq_django.api.queue import Queue

#: The default queue. Reusable apps declare tasks on it without knowing the project.
queue = Queue()

#: ``@task`` is ``@queue.task``.
task = queue.task
