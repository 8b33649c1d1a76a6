"""Sessions exported as documents to read."""
