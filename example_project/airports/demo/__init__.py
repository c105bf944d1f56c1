"""The parts of the `demo` command: the worker it starts, and how it shows what happens."""
