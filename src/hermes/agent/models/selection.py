"""The models that conversations can use: opened by name, and restored for a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hermes.agent.models.choice import OFFLINE, ModelChoice, choose_auxiliary_model, choose_model
from hermes.agent.models.model import Model
from hermes.agent.models.opening import open_model
from hermes.config import Config
from hermes.errors import HermesError
from hermes.state.rows import AnyRow
from hermes.state.sessions.imported import is_foreign


class RestoreResult(StrEnum):
    """Whether a session continues with its own model, or why not."""

    UNCHANGED = "unchanged"
    """The current model is the session's own, or the session has none."""
    RESTORED = "restored"
    NAMED = "named"
    """The user named another model."""
    IMPORTED = "imported"
    """The model of an imported session belongs to another installation."""
    WAS_OFFLINE = "was_offline"
    NOT_CONFIGURED = "not_configured"
    """Only the offline model is configured."""
    OTHER_PROVIDER = "other_provider"
    UNUSABLE = "unusable"
    """Opening it failed; `error` says why."""


@dataclass(frozen=True, slots=True)
class RestoredModel:
    """The model with which a session continues."""

    model: Model
    result: RestoreResult
    used: str = ""
    """The model that the session used before."""
    provider: str | None = None
    """The provider of that model."""
    error: HermesError | None = None


@dataclass(frozen=True, slots=True)
class Models:
    """Opens models from the configuration and the environment."""

    config: Config
    variables: Mapping[str, str]
    name: str | None = None
    """The model that the user named, if any."""

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

    def restore(self, row: AnyRow, current: Model) -> RestoredModel:
        """Return the model for a resumed session.

        The session's own model is restored if its provider is the current one. A session of the offline model
        continues with a real model if one is configured. The model of an imported session is never restored: it
        belongs to another installation.
        """
        used, provider = row["model"] or "", row["billing_provider"]
        result = self._kept(row, current)
        if result is not None:
            return RestoredModel(current, result, used, provider)
        try:
            return RestoredModel(self.open(used), RestoreResult.RESTORED, used, provider)
        except HermesError as error:
            return RestoredModel(current, RestoreResult.UNUSABLE, used, provider, error)

    def _kept(self, row: AnyRow, current: Model) -> RestoreResult | None:
        """Return why the current model is kept, or None if the session's own can be restored."""
        used = row["model"]
        if not used or used == current.name:
            return RestoreResult.UNCHANGED
        if self.name:
            return RestoreResult.NAMED
        if is_foreign(row):
            return RestoreResult.IMPORTED
        if used == OFFLINE:
            return RestoreResult.WAS_OFFLINE
        if current.name == OFFLINE:
            return RestoreResult.NOT_CONFIGURED
        if row["billing_provider"] not in (None, current.provider):
            return RestoreResult.OTHER_PROVIDER
        return None
