"""Agents in a gateway: the turns of lanes, and the conversations that are kept between them."""
