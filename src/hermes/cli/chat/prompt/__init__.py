"""The prompt of the chat: editing, history, the menu of commands and the status line."""
