"""The routes of the API: talking, conversations and sessions."""
