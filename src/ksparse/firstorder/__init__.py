"""First-order methods of the paper: the composite problem, step rules, the loop that runs a method, and the methods."""
