"""The question whether a tool may act: what is shown, and which keys answer it."""
