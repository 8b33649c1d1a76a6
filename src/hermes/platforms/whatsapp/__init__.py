"""The adapter of the WhatsApp Cloud API: a webhook for messages, and Meta's Graph API to send."""
