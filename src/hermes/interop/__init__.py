"""Import and export of session files: our own formats, and those of other programs."""
