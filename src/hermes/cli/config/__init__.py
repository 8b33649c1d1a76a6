"""The commands `hermes config`, and writing settings."""
