"""The store under every fault that can be made here: `python -m tests.torture`."""
