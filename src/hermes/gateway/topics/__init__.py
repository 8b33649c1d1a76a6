"""Topics of private chats on Telegram: each continues a session of its own, if the user has chosen that."""
