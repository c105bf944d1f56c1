"""Show: pages in Django's admin. They read; whatever changes something is one call of a ``Queue``
method.

Imported by the admin's own discovery. The classes are plain ``ModelAdmin`` classes: a project may
unregister one and register its own subclass.
"""

from __future__ import annotations

from django.apps import apps

if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin

    from flexiq_django.admin import dead_letters, fleet, pages, records
    from flexiq_django.models import (
        ArchivedJob,
        DeadLetter,
        Job,
        PeriodicTask,
        QueueState,
        ReplayHistory,
        Setting,
        TaskMetric,
        TaskState,
        Worker,
    )

    admin.site.register(Job, pages.JobAdmin)
    admin.site.register(ArchivedJob, pages.ArchivedJobAdmin)
    admin.site.register(DeadLetter, dead_letters.DeadLetterAdmin)
    admin.site.register(Worker, fleet.WorkerAdmin)
    admin.site.register(PeriodicTask, fleet.ScheduleAdmin)
    admin.site.register(QueueState, fleet.QueueAdmin)
    admin.site.register(TaskState, fleet.TaskAdmin)
    admin.site.register(Setting, records.SettingAdmin)
    admin.site.register(ReplayHistory, records.ReplayAdmin)
    admin.site.register(TaskMetric, records.MetricAdmin)
