"""`hermes gateway talk`: the client of a person."""
