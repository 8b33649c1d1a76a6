"""The way of a reply to its chat: sending from the outbox, previews while the model writes, undelivered replies."""
