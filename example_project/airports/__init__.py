"""Import airports from CSV files, in background jobs."""
