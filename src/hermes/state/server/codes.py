"""The meaning of a server's error codes."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from hermes import errors
from hermes.state.server.faults import ConnectFailed, ConnectionLost, Fault, ServerError, StatementTimeout, Verdict

_SENTENCES: dict[type[errors.HermesError], str] = {
    errors.StoreBusy: "other writers blocked {where} for too long",
    errors.StoreFull: "the disk of {where} is full",
    errors.StoreReadOnly: "{where} cannot be written",
    errors.StoreCorrupt: "{where} is damaged",
    errors.StoreUnavailable: "{where} cannot be reached",
    errors.InvalidValue: "a value cannot be stored",
    errors.Conflict: "the change contradicts what is stored",
}
_REFUSED = "{where} refused the connection"


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The error codes of one kind of server."""

    server: str
    """The name of the server, for errors with an unknown code."""
    verdicts: Mapping[str, Verdict]
    kinds: Mapping[str, type[errors.HermesError]]
    hints: Mapping[str, str]
    refused: Container[str] = ()
    """The codes with which the server refuses a connection."""
    class_length: int = 0
    """The length of a code's class, with which it begins; the tables may have a class instead of its codes."""

    def verdict(self, fault: Fault) -> Verdict:
        """Whether work that failed with this error may be repeated."""
        if isinstance(fault, ConnectionLost):
            return Verdict.RECONNECT
        if not isinstance(fault, ServerError):
            return Verdict.NEVER
        return self.verdicts.get(fault.code) or self.verdicts.get(self._class_of(fault)) or Verdict.NEVER

    def translate(self, fault: Fault, where: str) -> errors.HermesError:
        """Return the error of our tree for a fault."""
        if isinstance(fault, StatementTimeout):
            return errors.StoreBusy(f"{where} did not respond in time: {fault}")
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
        sentence = _REFUSED if self._is_any(fault, self.refused) else _SENTENCES[kind]
        return kind(f"{sentence.format(where=where)}: {fault}", hint=hint)

    def _is_any(self, fault: ServerError, codes: Container[str]) -> bool:
        return fault.code in codes or self._class_of(fault) in codes

    def _class_of(self, fault: ServerError) -> str:
        return fault.code[: self.class_length]
