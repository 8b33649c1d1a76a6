"""What the codes mean by which a server says why it did not do what it was asked."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from hermes import errors
from hermes.state.server.faults import ConnectFailed, ConnectionLost, Fault, ServerError, StatementTimeout, Verdict

_SENTENCES: dict[type[errors.HermesError], str] = {
    errors.StoreBusy: "others were in the way in {where} for too long",
    errors.StoreFull: "there is no room left for {where}",
    errors.StoreReadOnly: "{where} cannot be written",
    errors.StoreCorrupt: "{where} is damaged",
    errors.StoreUnavailable: "{where} cannot be reached",
    errors.InvalidValue: "a value cannot be stored",
    errors.Conflict: "the change contradicts what is stored",
}
_TURNED_AWAY = "{where} refused the connection"


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The codes of one kind of server."""

    server: str
    """Who failed, where its code means nothing else."""
    verdicts: Mapping[str, Verdict]
    kinds: Mapping[str, type[errors.HermesError]]
    hints: Mapping[str, str]
    turned_away: Container[str] = ()
    """What the server says to those whom it does not let in."""
    class_length: int = 0
    """So many characters at the beginning of a code are its class, which the tables may have in place of its codes."""

    def verdict(self, fault: Fault) -> Verdict:
        """Whether work that failed like this may be done again."""
        if isinstance(fault, ConnectionLost):
            return Verdict.RECONNECT
        if not isinstance(fault, ServerError):
            return Verdict.NEVER
        return self.verdicts.get(fault.code) or self.verdicts.get(self._class_of(fault)) or Verdict.NEVER

    def translate(self, fault: Fault, where: str) -> errors.HermesError:
        """The error of our tree that says what a failure means for the caller."""
        if isinstance(fault, StatementTimeout):
            return errors.StoreBusy(f"{where} did not answer in time: {fault}")
        if isinstance(fault, ConnectFailed):
            return errors.StoreUnavailable(f"{where} cannot be reached: {fault}", hint=fault.hint)
        if not isinstance(fault, ServerError):
            return errors.StoreUnavailable(
                f"the connection to {where} broke: {fault}", hint="check that the server is up, and try again"
            )
        hint = self.hints.get(fault.code) or self.hints.get(self._class_of(fault))
        kind = self.kinds.get(fault.code) or self.kinds.get(self._class_of(fault))
        if kind is None:
            return errors.StoreError(f"{self.server} failed in {where}: {fault} ({fault.code})", hint=hint)
        sentence = _TURNED_AWAY if self._is_any(fault, self.turned_away) else _SENTENCES[kind]
        return kind(f"{sentence.format(where=where)}: {fault}", hint=hint)

    def _is_any(self, fault: ServerError, codes: Container[str]) -> bool:
        return fault.code in codes or self._class_of(fault) in codes

    def _class_of(self, fault: ServerError) -> str:
        return fault.code[: self.class_length]
