"""Limits for an agent's tools: what needs approval, what is refused, and how a request is displayed to the user."""
