"""The search over supports."""
