"""`hermes sessions browse`: a full-screen list to find, manage and resume conversations."""
