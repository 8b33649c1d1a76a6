"""The agent: everything that conversations share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes.agent.accounting import Accounts
from hermes.agent.background import BackgroundTasks
from hermes.agent.memory.notes import FileMemory, MemoryProvider
from hermes.agent.models.model import Model
from hermes.agent.safety.approval import Approvals, AskOperator
from hermes.agent.safety.permits import Permits
from hermes.agent.safety.scanning.scanner import CommandScanner
from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.session_skills import AskSecret, SkillUse
from hermes.agent.tools.registry import Registry
from hermes.agent.tools.shell.background_processes import BackgroundProcesses
from hermes.agent.tools.toolsets import toolsets_for
from hermes.clock import Clock, system_clock
from hermes.config import Config

if TYPE_CHECKING:
    from hermes.state.owner_view import OwnerView


class Agent:
    """The store, the model and the tools that conversations share; safe to use from many threads."""

    def __init__(
        self,
        store: OwnerView,
        model: Model,
        *,
        tools: Registry,
        config: Config,
        home: Path,
        database: Path | None,
        auxiliary: Model | None = None,
        memory: MemoryProvider | None = None,
        operator: AskOperator | None = None,
        ask_secret: AskSecret | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.store = store
        """The widest view that a conversation can have; each conversation sees only the part of its own user."""
        self.database = database
        self.model = model
        self.auxiliary = auxiliary
        """Writes titles and summaries; None means the main model does."""
        self.tools = tools
        self.config = config
        self.home = home
        self.clock = clock
        self.memory: MemoryProvider = memory or FileMemory(home, config.memory.max_characters)
        self.processes = BackgroundProcesses(clock)
        self.approvals = Approvals(
            config.approvals.mode, Permits(home), chat_modes=config.approvals.sources, operator=operator
        )
        self.scanner = CommandScanner(config.security, home)
        """Checks commands before they run."""
        self.skills = SkillLibrary(home)
        self.skill_use = SkillUse()
        self.ask_secret = ask_secret
        """Asks the user at the terminal for the value of a variable; None if that is impossible."""
        self.accounts = Accounts(config.model)
        self.background = BackgroundTasks()

    def toolsets(self, source: str) -> frozenset[str]:
        """Return the toolsets that are enabled for conversations of a source."""
        return toolsets_for(source, self.config.tools, self.tools.toolsets)

    def settle(self, timeout_s: float) -> bool:
        """Wait for pending titles before the program ends; return False on timeout."""
        return self.background.settle(timeout_s)
