"""What an agent can do besides talking: tools, each in a named toolset, run within bounds."""
