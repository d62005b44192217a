"""Many arms of one type over time: what each differs by, and what changed."""
