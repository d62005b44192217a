"""Supervised execution of trajectories: segments, guards, stops; sends nothing itself."""
