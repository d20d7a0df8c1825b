"""Least squares with many right-hand sides on one Gram matrix."""
