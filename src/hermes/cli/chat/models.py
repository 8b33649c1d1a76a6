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
    """Finds models by the configuration and the environment."""

    config: Config
    variables: Mapping[str, str]
    name: str | None = None
    """The model that was named on the command line, if one was."""

    def choice(self, name: str | None = None) -> ModelChoice:
        """Which model is meant by a name, or by the configuration if there is none."""
        return choose_model(self.config.model, self.variables, name or self.name)

    def open(self, name: str | None = None) -> Model:
        """The model, ready to be asked."""
        return open_model(self.choice(name), self.config.model)

    def open_auxiliary(self) -> Model | None:
        """The model for titles and summaries; None if that is the same."""
        main = self.choice()
        choice = choose_auxiliary_model(self.config.model, self.variables, main)
        return None if choice == main else open_model(choice, self.config.model)

    def restore(self, row: AnyRow, current: Model) -> tuple[Model, str]:
        """The model for a session that was answered by another than the current one, and a line that says which it is.

        A model is restored where its provider is still the one in use; a session of the offline model goes on with a
        real one as soon as there is one. The model of an imported session is one of another installation.
        """
        noted, provider = row["model"], row["billing_provider"]
        if not noted or noted == current.name:
            return current, ""
        if self.name:
            return current, f"Model: {current.name}, as you said; it was {noted}"
        if is_foreign(row):
            return current, f"Model: {current.name}; {printable(noted)} answered where this session was imported from"
        if noted == OFFLINE:
            return current, f"Model: {current.name}; it was the offline model"
        if current.name == OFFLINE:
            return current, f"Model: offline; {noted} of this session is not configured now"
        if provider not in (None, current.provider):
            return current, f"Model: {current.name}; {noted} of this session is at {provider}, not {current.provider}"
        try:
            return self.open(noted), f"Model: {noted}"
        except HermesError as error:
            return current, f"Model: {current.name}; {noted} of this session cannot be used: {error.message}"
