"""Work of a gateway besides turns: hooks, the end of expired sessions, and the removal of old rows."""
