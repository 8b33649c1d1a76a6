"""What a resumed chat says about its model."""

from __future__ import annotations

from typing import assert_never

from hermes.agent.models.selection import RestoredModel, RestoreResult
from hermes.cli.display.terminal import printable


def restored_model_line(restored: RestoredModel) -> str:
    """Return a line about the model of a resumed session; empty if it is the one that the session used before."""
    model, used = restored.model, restored.used
    match restored.result:
        case RestoreResult.UNCHANGED:
            return ""
        case RestoreResult.RESTORED:
            return f"Model: {used}"
        case RestoreResult.NAMED:
            why = f"this session used {used}"
        case RestoreResult.IMPORTED:
            why = f"this imported session used {printable(used)}"
        case RestoreResult.WAS_OFFLINE:
            why = "this session used the offline model"
        case RestoreResult.NOT_CONFIGURED:
            why = f"this session used {used}, which is not configured"
        case RestoreResult.OTHER_PROVIDER:
            why = f"this session used {used} from {restored.provider}, not {model.provider}"
        case RestoreResult.UNUSABLE:
            reason = restored.error.message if restored.error is not None else ""
            why = f"this session used {used}, which cannot be used: {reason}"
        case never:
            assert_never(never)
    return f"Model: {model.name} ({why})"
