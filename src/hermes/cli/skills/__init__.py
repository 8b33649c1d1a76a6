"""`hermes skills`: shows the skills of the Hermes home."""
