"""The modules that are loaded before the agent can answer."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "asyncio",
    "click",
    "httpx2",
    "ssl",
    "yaml",
    "msgspec",
    "hermes.agent.models.http.endpoint",
    "hermes.agent.compression.compress",
)
PROGRAM = f"""
import sys
import hermes.agent.agent, hermes.agent.conversation, hermes.agent.models.offline.model, hermes.agent.tools.toolbox
print([name for name in {HEAVY!r} if name in sys.modules])
"""


def test_agent_import_loads_no_rarely_needed_modules() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
