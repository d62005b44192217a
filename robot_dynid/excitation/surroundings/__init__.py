"""What is kept clear of: distances, proofs between samples, ways round obstacles."""
