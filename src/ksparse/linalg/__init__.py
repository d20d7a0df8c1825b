"""Linear algebra that knows of no loss and no set: data matrices, quadratics, small quadratic programs and their bounds."""
