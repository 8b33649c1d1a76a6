"""The gateway: how many messages and turns a node takes, how quickly it starts and takes over, and what it costs."""
