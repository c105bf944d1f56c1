"""The example project: settings, URLs and entry points."""
