#!/usr/bin/env python
"""Django's command line for the example project."""

import os
import sys
from importlib.util import find_spec

NEEDED = ("django", "environ", "airportsdata", "flexiq_django")


def main() -> None:
    """Run the command that was asked for."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(
            f"This Python has no {', '.join(missing)}. `make demo` makes an environment that has;"
            " use its Python: .venv/bin/python example_project/manage.py ..."
        )
    from django.core.management import execute_from_command_line

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
