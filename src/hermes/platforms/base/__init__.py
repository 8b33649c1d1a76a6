"""What all adapters share: sending in parts, completing previews, and errors that say what the platform has."""

from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.backoff import Backoff
from hermes.platforms.base.failures import error_of_connection, error_of_status
from hermes.platforms.base.splitting import split_text

__all__ = ["Backoff", "BaseAdapter", "Part", "error_of_connection", "error_of_status", "split_text"]
