"""Sparse principal component analysis."""
