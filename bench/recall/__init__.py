"""Recall: how often a search finds the session that holds the answer to a question."""
