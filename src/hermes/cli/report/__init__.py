"""Reports about a period: for the terminal, and as a page."""
