"""Supervised execution of trajectories: segments, guards, stops; the caller sends the commands."""
