"""Design of excitation trajectories within limits; the kinds of them are in families.py."""
