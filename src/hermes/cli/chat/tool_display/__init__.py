"""Tools as the user sees them: which one runs, how it ended, and its output."""
