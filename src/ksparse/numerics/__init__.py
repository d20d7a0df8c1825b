"""Dense mathematics that knows no data matrix, loss or set."""
