"""Measures the session store beside a raw floor and beside its peers, all in one run."""
