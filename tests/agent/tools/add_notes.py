"""A process that adds notes to an owner's memory: `python -m tests.agent.tools.add_notes HOME OWNER NAME COUNT`."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes.agent.memory.notes import FileMemory
from hermes.state.owner import owner_from_column

home, owner, name, count = sys.argv[1:]
memory = FileMemory(Path(home), max_characters=100_000)
for number in range(int(count)):
    memory.add(owner_from_column(owner), f"{name} {number}")
