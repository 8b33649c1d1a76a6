"""What is remembered: one set of operations over interchangeable database engines."""
