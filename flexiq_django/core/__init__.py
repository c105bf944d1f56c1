"""Decide: plain values and rules, without Django, without I/O, without a clock of its own."""
