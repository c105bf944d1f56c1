"""The ways to run the body of a task. Each only turns claimed jobs into outcomes."""
