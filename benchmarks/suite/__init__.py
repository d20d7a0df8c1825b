"""Comparison of contenders: the same raw problems, one process per run, answers checked against the raw data alone."""
