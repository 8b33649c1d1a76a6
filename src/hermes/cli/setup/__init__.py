"""`hermes setup`: which model answers, tested before it is stored."""
