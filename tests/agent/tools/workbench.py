"""Tools of a session, with a user whose answers the test decides."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hermes.agent.memory.notes import FileMemory
from hermes.agent.models.model import Cancellation, ToolCall
from hermes.agent.safety.approval import ApprovalRequest, Approvals, Decision
from hermes.agent.safety.permits import Permits
from hermes.agent.tools.context import ToolContext, WorkingDirectory
from hermes.agent.tools.registry import Registry
from hermes.agent.tools.results import ToolResult
from hermes.agent.tools.shell.background_processes import BackgroundProcesses
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Mode
from hermes.state.owner import EVERYBODY, TERMINAL
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB

SESSION = "20261116_090000_0badcafe"


@dataclass
class Person:
    """A user who records the requests and gives a fixed answer."""

    decision: Decision = Decision.ONCE
    asked: list[ApprovalRequest] = field(default_factory=list)

    def __call__(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.decision


class Workbench:
    """A session with its tools."""

    def __init__(self, home: Path, work: Path, store: SessionDBProvider, mode: Mode = "ask") -> None:
        self.person = Person()
        self.cancellation = Cancellation()
        self.context = ToolContext(
            session_id=SESSION,
            source="cli",
            owner=TERMINAL,
            toolsets=TOOLBOX.toolsets,
            home=home,
            working_directory=WorkingDirectory(work),
            store=store.for_owner(EVERYBODY),
            database=store.db_path if isinstance(store, SessionDB) else None,
            memory=FileMemory(home),
            processes=BackgroundProcesses(),
            approvals=Approvals(mode, Permits(home)),
            approve=self.person,
            cancellation=self.cancellation,
            environ={"PATH": os.environ["PATH"], "HOME": str(home.parent)},
        )

    @property
    def work(self) -> Path:
        """The directory of the session."""
        return self.context.directory.root

    def change(self, **fields: Any) -> None:
        """Change fields of the session's context; a new owner gets the matching view of the store."""
        if "owner" in fields:
            fields["store"] = self.context.store.narrowed_to(fields["owner"])
        self.context = replace(self.context, **fields)

    def run(self, name: str, arguments: str, registry: Registry = TOOLBOX) -> ToolResult:
        """Run a call with arguments as a model wrote them."""
        return registry.run(ToolCall("call_1", name, arguments), self.context)

    def call(self, name: str, /, **arguments: Any) -> str:
        """Return the text of a successful call."""
        result = self.run(name, json.dumps(arguments))
        assert not result.is_error, result.text
        return result.text

    def refused(self, name: str, /, **arguments: Any) -> str:
        """Return the error text of a failed call."""
        result = self.run(name, json.dumps(arguments))
        assert result.is_error, result.text
        return str(json.loads(result.text)["error"])


def is_alive(process_id: int) -> bool:
    """Whether a process is running; a zombie is not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process_id)], capture_output=True, text=True, timeout=20)
    return bool(found.stdout.strip()) and not found.stdout.strip().startswith("Z")
