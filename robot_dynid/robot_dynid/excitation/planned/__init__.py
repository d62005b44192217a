"""Planned excitations: sine sequences, sweeps, static poses, composites."""
