"""Dense mathematics: constraints, quadratic and linear programs, bounds, eigenvalues, relaxations."""
