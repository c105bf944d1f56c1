"""The operator surface over HTTP."""
