"""The room that writes rows."""
