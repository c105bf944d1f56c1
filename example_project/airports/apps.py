"""The app."""

from django.apps import AppConfig


class AirportsConfig(AppConfig):
    """Airports, the files they came from, and the jobs that bring them in."""

    name = "airports"
    verbose_name = "Airports"
