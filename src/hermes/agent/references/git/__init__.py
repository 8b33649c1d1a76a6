"""Changes and files of a git repository, read without any of its settings."""
