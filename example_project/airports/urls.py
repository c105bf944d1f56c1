"""The pages."""

from django.urls import path

from airports import views

app_name = "airports"

urlpatterns = [
    path("", views.home, name="home"),
    path("progress.json", views.progress, name="progress"),
    path("imports/<int:pk>/", views.import_page, name="import"),
    path("imports/<int:pk>/map.svg", views.map_file, name="map"),
    path("imports/<int:pk>/summary.txt", views.summary_file, name="summary"),
]
