"""Where workers of the test project find tasks: each folder of tests keeps its own."""

from tests.flows import executor_tasks
from tests.flows import tasks as flow_tasks

__all__ = ["executor_tasks", "flow_tasks"]
