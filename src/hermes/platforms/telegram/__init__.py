"""Telegram: polling or a webhook, private chats, groups, forum topics and channels."""
