"""Tests; `tests.support` and its like are importable because this is a package."""
