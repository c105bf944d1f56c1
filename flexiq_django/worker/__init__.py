"""Run: the worker process."""
