"""The agent: runs the turns of a conversation with prompt, model, tools, compression and title."""
