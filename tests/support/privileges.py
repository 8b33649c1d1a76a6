"""Processes that must not be root."""

from __future__ import annotations

import os
from typing import Any


def unprivileged() -> dict[str, Any]:
    """The arguments with which a process is started that gives up being root, if this one is."""
    if os.geteuid():
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
