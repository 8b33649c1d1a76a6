"""The web: a guard against addresses that must not be fetched, reading pages, and search backends."""
