"""The store of lanes and transcripts: operations, and the way to the database."""
