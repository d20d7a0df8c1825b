"""Linear models, sparse components and portfolios as k-sparse problems: scaled, solved, and undone in the answer."""
