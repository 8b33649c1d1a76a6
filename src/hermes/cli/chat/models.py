"""The models that a chat can use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hermes.agent.models.choice import OFFLINE, ModelChoice, choose_auxiliary_model, choose_model
from hermes.agent.models.model import Model
from hermes.agent.models.opening import open_model
from hermes.cli.display.terminal import printable
from hermes.config import Config
from hermes.errors import HermesError
from hermes.state.rows import AnyRow
from hermes.state.sessions.imported import is_foreign


@dataclass(frozen=True, slots=True)
class Models:
    """Opens models from the configuration and the environment."""

    config: Config
    variables: Mapping[str, str]
    name: str | None = None
    """The model given on the command line, if any."""

    def choice(self, name: str | None = None) -> ModelChoice:
        """Return the model of this name, or the configured one."""
        return choose_model(self.config.model, self.variables, name or self.name)

    def open(self, name: str | None = None) -> Model:
        """Open the model of this name, or the configured one."""
        return open_model(self.choice(name), self.config.model)

    def open_auxiliary(self) -> Model | None:
        """Open the model for titles and summaries; None if it is the main model."""
        main = self.choice()
        choice = choose_auxiliary_model(self.config.model, self.variables, main)
        return None if choice == main else open_model(choice, self.config.model)

    def restore(self, row: AnyRow, current: Model) -> tuple[Model, str]:
        """Return the model for a resumed session, and a line about it if that is not the current model.

        The session's own model is restored if its provider is the current one. A session of the offline model
        continues with a real model if one is configured. The model of an imported session is never restored: it
        belongs to another installation.
        """
        used, provider = row["model"], row["billing_provider"]
        if not used or used == current.name:
            return current, ""
        if self.name:
            return current, f"Model: {current.name} (this session used {used})"
        if is_foreign(row):
            return current, f"Model: {current.name} (this imported session used {printable(used)})"
        if used == OFFLINE:
            return current, f"Model: {current.name} (this session used the offline model)"
        if current.name == OFFLINE:
            return current, f"Model: offline (this session used {used}, which is not configured)"
        if provider not in (None, current.provider):
            return current, f"Model: {current.name} (this session used {used} from {provider}, not {current.provider})"
        try:
            return self.open(used), f"Model: {used}"
        except HermesError as error:
            return current, f"Model: {current.name} (this session used {used}, which cannot be used: {error.message})"
