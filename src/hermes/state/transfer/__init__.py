"""From one store to another: everything that belongs to conversations, whichever engines hold the two."""
