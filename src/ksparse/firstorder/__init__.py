"""The paper's first-order methods: F and its points, step rules, the loop that runs a method, the methods themselves."""
