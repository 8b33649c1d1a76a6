"""Hermes: durable, searchable, resumable agent sessions."""

__version__ = "0.1.0"
