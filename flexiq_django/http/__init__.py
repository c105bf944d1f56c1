"""The operator surface over HTTP: counts, listings, one job, requeue. Off unless switched on."""
