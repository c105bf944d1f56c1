"""An empty project on one Django: install the wheel, do what the documentation of tasks says, word
for word, with our backend and worker, then see a job in the admin and requeue it there.

    python .ci/fresh WHEEL 6.1

The words are those of Django's own topic guide, from its source distribution; on Django 5.2 those
of the README of the backport. Needs an index for pip. Exits non-zero where something differs.
"""

import sys
import tempfile
from pathlib import Path

from admin import look_at_it
from documentation import follow_django, follow_readme
from project import Project


def main(wheel: str, version: str) -> None:
    """Everything, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), str(Path(wheel).resolve()), version)
        sys.stdout.write(f"Django {project.run('-m', 'django', '--version')}")
        project.write("things/views_tasks.py", "task_of_the_view = None\n")
        project.set_up()
        follow = follow_readme if project.has_backport else follow_django
        look_at_it(project, follow(project))


if __name__ == "__main__":
    main(*sys.argv[1:])
