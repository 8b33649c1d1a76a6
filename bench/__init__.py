"""Measures the session store next to a raw floor and other products, all in one run."""
