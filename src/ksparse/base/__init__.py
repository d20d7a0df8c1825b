"""What every room uses: arrays of every kind, checks of what users give, the deadline, threads, lines that are printed."""
