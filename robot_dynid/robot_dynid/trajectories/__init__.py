"""Trajectories: continuous motions that start and end at rest, and their limits."""
