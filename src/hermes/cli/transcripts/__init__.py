"""Sessions as documents for people."""
