"""`hermes completion`, and what a shell is answered when somebody presses the Tab key."""
