"""The commands that can be given within a chat."""
