"""Each command is a thin surface: it reads its options, calls one thing, and reports."""
