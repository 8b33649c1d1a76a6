"""People: what they may do, and how much."""
