"""All that can be asked of a queue or done to it, theme by theme: one file for each."""

from __future__ import annotations

from flexiq_django.api.figures import Measures
from flexiq_django.api.inspection import Inspection
from flexiq_django.api.listings import Listings
from flexiq_django.api.operations import Operations
from flexiq_django.api.purging import Purging
from flexiq_django.api.retention import Housekeeping
from flexiq_django.api.reviving import Reviving
from flexiq_django.api.scheduling import Scheduling
from flexiq_django.api.schema import Schema
from flexiq_django.api.settings_store import SettingsStore
from flexiq_django.api.steering import Steering


class Methods(
    Inspection,
    Listings,
    Measures,
    Operations,
    Reviving,
    Purging,
    Steering,
    Scheduling,
    Housekeeping,
    SettingsStore,
    Schema,
):
    """The methods of ``Queue`` beside those that declare tasks and store jobs."""
