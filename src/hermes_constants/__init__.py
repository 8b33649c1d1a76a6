"""The documented import path of `get_hermes_home`."""

from hermes.home import get_hermes_home

__all__ = ["get_hermes_home"]
