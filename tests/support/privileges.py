"""Processes that must not be root."""

from __future__ import annotations

import os
from typing import Any


def unprivileged() -> dict[str, Any]:
    """The arguments that start a process without root rights, if this process has them."""
    if os.geteuid():
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
