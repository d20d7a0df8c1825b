"""The paper's first-order methods: F and its points, step rules, the only loop, the methods themselves."""
