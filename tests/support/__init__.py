"""Shared by tests: a clock that tests control, fresh stores for every engine, and shortcuts to fill them."""
