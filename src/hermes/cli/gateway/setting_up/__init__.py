"""`hermes gateway setup` and `hermes gateway service`: a bot, and the gateway as a service."""
