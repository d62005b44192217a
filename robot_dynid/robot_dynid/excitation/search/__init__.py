"""Search for the best coefficients: exact gradients, constraints, an interior point."""
