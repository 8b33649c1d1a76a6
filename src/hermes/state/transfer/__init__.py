"""Copy all conversations from one store to another, with any engines."""
