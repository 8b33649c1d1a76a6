"""Markdown on a terminal."""
