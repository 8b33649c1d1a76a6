"""Commands that show something, and /model: /status, /usage, /help, /queue and /steer without a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.errors import HermesError, StoreError
from hermes.gateway.commands import texts
from hermes.gateway.commands.lane import AskedLane, asked_lane, change_extra, started_session, view_of
from hermes.gateway.commands.parsing import ADMIN_COMMANDS, APPROVER_COMMANDS, COMMANDS, TELEGRAM_COMMANDS
from hermes.gateway.commands.result import CommandResult
from hermes.gateway.people.times import clock_time, span
from hermes.gateway.store.lane_entries import MODEL, chosen_model
from hermes.gateway.topics.routing import is_private
from hermes.phrases import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.gateway.commands.context import CommandContext
    from hermes.state.row_types import SessionRow

_PAGE = 1000
_MAX_MODEL = 200
_WITHOUT_COMMANDS = ("normal", "queue", "steer", "internal")
DEFAULT = "default"


async def status(context: CommandContext) -> CommandResult:
    """Show the facts about the lane and its session."""
    services = context.services
    lane = await asked_lane(context)
    row = await view_of(context, lane).get_session(lane.session_id) if lane.row is not None else None
    waiting, held = await _waiting(context, lane), await _held(context, lane)
    zone = services.gateway_config.zone
    facts: dict[str, str] = {"Session": texts.NO_SESSION}
    if row is not None and lane.row is not None:
        is_stopped = " (stopped; your next message starts a new one)" if lane.row["suspended"] else ""
        facts = {
            "Session": f"{row['id']}{is_stopped}",
            "Title": texts.shorten(row["title"], texts.MAX_ECHO) if row["title"] else "none",
            "Created": clock_time(row["started_at"], zone),
            "Last activity": clock_time(lane.row["updated_at"], zone),
            "Messages": f"{row['message_count']}",
            "Tokens": f"{(row['input_tokens'] or 0) + (row['output_tokens'] or 0):,}",
            "Cost": _cost(row),
        }
    facts |= {
        "Model": _model_of(context, lane),
        "Turn": _running(context, lane),
        "Waiting": plural(waiting, "message"),
        "Held": plural(held, "message"),
        "Node": services.node or "unnamed",
    }
    return CommandResult(texts.facts(facts))


async def usage(context: CommandContext) -> CommandResult:
    """Show the tokens and costs of the session, and what is left of today's limits."""
    lane = await asked_lane(context)
    row = await view_of(context, lane).get_session(lane.session_id) if lane.row is not None else None
    facts = {"Session": texts.NO_SESSION}
    if row is not None:
        facts = {
            "Model calls": f"{row['api_call_count'] or 0:,}",
            "Input tokens": f"{row['input_tokens'] or 0:,}",
            "Output tokens": f"{row['output_tokens'] or 0:,}",
            "Cache read": f"{row['cache_read_tokens'] or 0:,}",
            "Cache written": f"{row['cache_write_tokens'] or 0:,}",
            "Cost": _cost(row),
        }
    limits = context.services.limits
    if limits is not None:
        facts |= await limits.today(lane.owner, context.source, context.services.now())
    return CommandResult(texts.facts(facts))


async def model(context: CommandContext) -> CommandResult:
    """Show the model of the lane, or choose another one for it."""
    services, key = context.services, context.session_key
    name = context.args
    lane = await asked_lane(context)
    if not name:
        is_chosen = chosen_model(lane.row) is not None
        return CommandResult(texts.model_shown(_model_of(context, lane), is_chosen=is_chosen))
    if context.is_turn_running:
        return CommandResult(texts.SWITCH_LATER)
    if name.lower() == DEFAULT:
        if lane.row is not None:
            await change_extra(services.db, key, lambda extra: {k: v for k, v in extra.items() if k != MODEL})
        services.brain.set_model(key, None)
        return CommandResult(texts.DEFAULT_MODEL_RESTORED)
    if len(name) > _MAX_MODEL or not name.isprintable():
        return CommandResult(texts.model_refused(name, HermesError("this is not the name of a model")))
    try:
        checked = await services.run_blocking(lambda: services.brain.check_model(name))
    except StoreError:
        raise
    except HermesError as error:
        return CommandResult(texts.model_refused(name, error))
    await started_session(context, lane)
    await change_extra(services.db, key, lambda extra: {**extra, MODEL: name})
    services.brain.set_model(key, name)
    return CommandResult(texts.model_set(checked or name))


async def queue(context: CommandContext) -> CommandResult:
    """Show how `/queue` is used, and how many messages it has queued."""
    lane = await asked_lane(context)
    depth = await _waiting(context, lane, kinds=("queue",))
    return CommandResult(texts.queue_usage(depth, await _held(context, lane)))


async def steer(context: CommandContext) -> CommandResult:
    """Show how `/steer` is used, and how many messages wait."""
    return CommandResult(texts.steer_usage(await _waiting(context, await asked_lane(context))))


async def show_help(context: CommandContext) -> CommandResult:
    """List the commands that the user may use."""
    access, source = context.services.access, context.source
    hidden: set[str] = set()
    if not access.is_admin(source):
        hidden |= ADMIN_COMMANDS
    if not access.may_approve(source):
        hidden |= APPROVER_COMMANDS
    if not is_private(source):
        hidden |= TELEGRAM_COMMANDS
    return CommandResult(texts.help_text([each for each in COMMANDS if each.name not in hidden]))


async def _waiting(context: CommandContext, lane: AskedLane, kinds: Sequence[str] = _WITHOUT_COMMANDS) -> int:
    """Return how many messages wait; none are shown of a lane that another user has."""
    if lane.is_foreign:
        return 0
    return len(await context.services.db.inbox.waiting(context.session_key, kinds=kinds, limit=_PAGE))


async def _held(context: CommandContext, lane: AskedLane) -> int:
    """Return how many messages are held; none are shown of a lane that another user has."""
    return 0 if lane.is_foreign else len(await context.services.db.inbox.held(context.session_key, limit=_PAGE))


def _model_of(context: CommandContext, lane: AskedLane) -> str:
    return chosen_model(lane.row) or context.services.brain.model_of("" if lane.is_foreign else context.session_key)


def _running(context: CommandContext, lane: AskedLane) -> str:
    info = None if lane.is_foreign else context.services.running(context.session_key)
    if info is None:
        return "running" if context.is_turn_running and not lane.is_foreign else "none is running"
    activity = f", {texts.shorten(info.activity, texts.MAX_ECHO)}" if info.activity else ""
    return f"running for {span(info.seconds)}{activity}"


def _cost(row: SessionRow) -> str:
    cost = row["actual_cost_usd"] if row["actual_cost_usd"] is not None else row["estimated_cost_usd"]
    if cost is None:
        return "unknown"
    return f"${cost:.4f}" if row["actual_cost_usd"] is not None else f"${cost:.4f} (estimated)"
