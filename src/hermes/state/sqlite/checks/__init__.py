"""What is looked at in a checkup of an SQLite file, one module for each matter."""
