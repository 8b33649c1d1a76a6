"""The queue of a lane: messages that wait, the lease of a node, and the turns in which the node works on them."""
