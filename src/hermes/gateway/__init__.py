"""Chats: who speaks where, which session that is, when it resets, and the gateway that answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.gateway.config import GatewayConfig
from hermes.gateway.config_file import load_gateway_config
from hermes.gateway.context import SessionContext, build_session_context
from hermes.gateway.decide import ResetReason, decide
from hermes.gateway.entry import SessionEntry
from hermes.gateway.event import MessageEvent, MessageType
from hermes.gateway.keys import build_session_key, is_shared_multi_user_session, lane_owner
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import HomeChannel, PlatformConfig, StreamingConfig
from hermes.gateway.policy import SessionResetPolicy
from hermes.gateway.prompt import build_session_context_prompt, build_turn_note
from hermes.gateway.source import SessionSource
from hermes.gateway.store.aio import AsyncSessionStore
from hermes.gateway.store.session_store import SessionStore
from hermes.gateway.whatsapp import (
    canonical_whatsapp_identifier,
    expand_whatsapp_aliases,
    normalize_whatsapp_identifier,
)

if TYPE_CHECKING:
    from hermes.gateway.node.runner import GatewayRunner

__all__ = [
    "AsyncSessionStore",
    "GatewayConfig",
    "GatewayRunner",
    "HomeChannel",
    "MessageEvent",
    "MessageType",
    "Platform",
    "PlatformConfig",
    "ResetReason",
    "SessionContext",
    "SessionEntry",
    "SessionResetPolicy",
    "SessionSource",
    "SessionStore",
    "StreamingConfig",
    "build_session_context",
    "build_session_context_prompt",
    "build_session_key",
    "build_turn_note",
    "canonical_whatsapp_identifier",
    "decide",
    "expand_whatsapp_aliases",
    "is_shared_multi_user_session",
    "lane_owner",
    "load_gateway_config",
    "normalize_whatsapp_identifier",
]


def __getattr__(name: str) -> Any:
    """Import the runner when it is used: a program that only reads lanes does not need the agent."""
    if name == "GatewayRunner":
        from hermes.gateway.node.runner import GatewayRunner

        return GatewayRunner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
