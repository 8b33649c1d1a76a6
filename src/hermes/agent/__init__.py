"""One turn of a conversation: prompt, model, tools, compression, title."""
