"""Measurements side by side with other queues: ``python -m tests.benchmarks --help``."""
