"""Sessions in the forms of files: our own, and those of other programs."""
