"""`hermes sessiondb`: the commands that manage the database."""
