"""Published experiments, benchmarks and the demonstration: what judges robot_dynid."""
