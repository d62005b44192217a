"""Design of excitation trajectories within limits; families.py lists the kinds."""
