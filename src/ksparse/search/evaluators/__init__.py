"""The best value over C on a support: by direct solves, by an eigenvector, by a first-order method."""
