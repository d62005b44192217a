"""Supervised execution: plan, points, guards, and what is commanded when."""
