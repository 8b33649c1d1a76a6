"""The adapter of Matrix: rooms, direct messages and threads of one account on a homeserver."""
