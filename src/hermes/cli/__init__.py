"""The `hermes` command line and the terminal chat."""
