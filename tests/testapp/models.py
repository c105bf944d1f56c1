"""What user code leaves behind in its own tables."""

from django.db import models


class Mark(models.Model):
    """One visible effect of one run of a task: two rows with one key mean it ran twice."""

    key = models.CharField(max_length=200, db_index=True)
    value = models.CharField(max_length=200, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.key}={self.value}"
