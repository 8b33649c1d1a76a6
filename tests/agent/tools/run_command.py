"""A process that runs one command as an agent: `python -m tests.agent.tools.run_command PERSON COMMAND`."""

from __future__ import annotations

import sys
from pathlib import Path

from hermes_state import SessionDB
from tests.agent.tools.workbench import Workbench

person, command = Path(sys.argv[1]), sys.argv[2]
with SessionDB(person / ".hermes" / "state.db") as store:
    try:
        Workbench(person / ".hermes", person / "work", store).call("terminal", command=command)
    except KeyboardInterrupt:
        sys.exit(130)
