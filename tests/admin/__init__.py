"""Pages in the admin."""
