"""Published experiments, benchmarks and the demonstration of robot_dynid."""
