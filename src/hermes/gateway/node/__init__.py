"""A node: one gateway process, from its start to the end of its last turn."""
