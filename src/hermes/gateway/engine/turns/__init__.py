"""One turn of a lane: its session, the names of its users, its supervision and its end."""
