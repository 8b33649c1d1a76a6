"""`hermes sessiondb`: the database behind the sessions."""
