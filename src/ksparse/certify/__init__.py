"""How far from the optimum an answer can be: lower bounds, and branch and bound until they meet it."""
