"""The gateway's HTTP server: webhooks of platforms, an API for programs, health and metrics."""
