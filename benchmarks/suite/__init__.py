"""Contenders beside each other: the same raw problems, one child process per run, one judge that knows only the raw data."""
