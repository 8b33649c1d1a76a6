"""Discord: direct messages, the channels of servers, threads and forum posts."""
