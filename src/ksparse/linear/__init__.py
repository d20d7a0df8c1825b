"""Linear models with at most k features."""
