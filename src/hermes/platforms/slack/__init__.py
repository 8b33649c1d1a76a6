"""Slack: direct messages, channels and threads, by socket mode or by webhook."""
