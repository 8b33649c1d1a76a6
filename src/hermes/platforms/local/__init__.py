"""The local platform: programs of the same user talk to the gateway over a socket in the Hermes home."""

from hermes.platforms.local.adapter import LocalAdapter
from hermes.platforms.local.client import LocalClient

__all__ = ["LocalAdapter", "LocalClient"]
