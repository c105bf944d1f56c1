"""Ask: what application code touches."""
