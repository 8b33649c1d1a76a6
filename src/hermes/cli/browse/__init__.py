"""`hermes sessions browse`: a full screen to find a conversation, to tidy up, and to go on with one."""
