"""`hermes completion`, and the candidates that shells ask for on the Tab key."""
