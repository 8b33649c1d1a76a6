"""Messages to platforms: stored before they are sent, taken by one node at a time, and sent in order in each lane."""
