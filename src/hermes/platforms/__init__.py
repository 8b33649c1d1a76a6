"""Adapters: each connects the gateway to one chat platform."""
