"""The files of a session store: the export, its import, and what replaces the database while it is away."""
