"""Many right-hand sides on one Gram matrix: the search over supports in its leanest form."""
