"""What the user types or pipes in: modes of the terminal, keys during an answer, lines, and questions."""
