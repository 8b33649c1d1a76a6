"""Shell commands: `terminal` runs them, `process` manages those in the background."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, assert_never

from hermes.agent.safety.approval import ApprovalRequest
from hermes.agent.safety.paths import is_special, is_too_wide
from hermes.agent.safety.visible_text import fold_blanks, make_path_visible, make_visible
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import tool
from hermes.agent.tools.results import ToolResult, failure
from hermes.errors import InvalidValue, NotFound

if TYPE_CHECKING:
    from hermes.agent.safety.scanning.findings import Verdict
    from hermes.agent.tools.shell.background_processes import BackgroundProcess
    from hermes.agent.tools.shell.process import Process

TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 3_600.0
WAIT_S = 30.0

FINDINGS = "Check this before you allow it:"
"""Begins the list of what makes a command dangerous."""

_HEADINGS: dict[Verdict, str] = {"block": "Tirith blocks this command", "warn": "Tirith warns of this command"}
_MIN_TIMEOUT_S = 0.1
_MAX_SUMMARY = 100


@tool(toolset="terminal", more="narrow the command, or let it write to a file and read that in parts")
def terminal(
    context: ToolContext,
    command: Annotated[str, "The command, run in bash if available. It cannot read input."],
    background: Annotated[bool, "Start it and return its id at once, for servers and long work; see process."] = False,
    timeout_s: Annotated[
        float, "Seconds after which it is ended, at most 3600; ignored in the background."
    ] = TIMEOUT_S,
    cwd: Annotated[str | None, "Directory for this and all later commands; a cd lasts for one command only."] = None,
) -> str | ToolResult:
    """Run a shell command on this computer; returns its output and exit code. The user may be asked first."""
    from hermes.agent.tools.shell.process import Process

    if not command.strip() or "\0" in command:
        raise InvalidValue("there is no command to run, or it contains NUL")
    directory = _directory(context, cwd)
    environ = _unasked_environment(context, command, directory)
    if environ is None:
        from hermes.agent.safety.environment import command_environment

        denied = _refusal(context, command, directory, in_background=background)
        if denied is not None:
            return failure(denied)
        environ = command_environment(context.environ, context.env_passthrough)
        if context.skills is not None:
            environ |= context.skills.variables(context.environ)
    context.directory.cwd = directory
    if background:
        started = context.processes.start(context.session_id, command, cwd=directory, environ=environ)
        return f"[started as {started.id}, pid {started.process.pid}; use the process tool to follow it]"
    return _run(
        Process(command, cwd=directory, environ=environ), context, max(_MIN_TIMEOUT_S, _limit_timeout(timeout_s))
    )


@tool(toolset="terminal", more="poll more often")
def process(
    context: ToolContext,
    action: Annotated[
        Literal["list", "poll", "wait", "kill"],
        "list all; poll the new output of one; wait for its end; kill it with all its child processes.",
    ],
    process_id: Annotated[str | None, "The process, such as p1; not for list."] = None,
    timeout_s: Annotated[float, "The longest wait in seconds, for wait."] = WAIT_S,
) -> str:
    """Manage the background processes that terminal started in this session."""
    if action == "list":
        own = context.processes.of(context.session_id)
        return (
            "\n".join(_format_process(each, context.clock()) for each in own)
            or "No background processes in this session."
        )
    if process_id is None:
        raise InvalidValue(f"{action} needs a process_id", hint="use the action list to see them")
    found = context.processes.get(context.session_id, process_id).process
    match action:
        case "poll":
            pass
        case "wait":
            found.wait(_limit_timeout(timeout_s), context.cancellation, context.show_output)
        case "kill":
            found.end()
        case never:
            assert_never(never)
    return _format_output(found, _format_state(found))


def _run(running: Process, context: ToolContext, timeout_s: float) -> ToolResult:
    """Run a command in the foreground until its end; it never outlives the call."""
    from hermes.agent.tools.shell.process import GRACE_S

    try:
        running.start()
        has_ended = running.wait(timeout_s, context.cancellation, context.show_output)
    except BaseException:
        running.end(grace_s=0)
        raise
    if has_ended:
        return ToolResult(_format_output(running, _format_state(running)), exit_code=running.exit_code)
    is_stopped = context.cancellation.is_cancelled
    running.end(grace_s=0 if is_stopped else GRACE_S)
    if is_stopped:
        output = _format_output(running, "ended, because the user stopped this turn")
        return ToolResult(output, is_error=True, end="stopped")
    why = f"ended with all its child processes, because it took more than {timeout_s:g} s"
    output = _format_output(running, f"{why}; use background, or a higher timeout_s")
    return ToolResult(output, is_error=True, end="stopped at its time limit")


def _unasked_environment(context: ToolContext, command: str, directory: Path) -> dict[str, str] | None:
    """Return the variables for a command that only reads in the session's directory, or None if it needs approval."""
    from hermes.agent.safety.commands import is_read_only
    from hermes.agent.safety.environment import read_only_environment

    def may_read(path: str) -> bool:
        return _may_read(context, path, directory)

    if not may_read(".") or not is_read_only(command, may_read):
        return None
    return read_only_environment(context.environ, [context.directory.root, *context.user_homes])


def _may_read(context: ToolContext, path: str, directory: Path) -> bool:
    """Whether a file may be read without approval."""
    try:
        place = context.resolve_path(path or ".", directory)
    except InvalidValue:
        return False
    # Reading a pipe would block, and reading a device may have any effect.
    return context.is_free(place) and not is_special(place.real)


def _refusal(context: ToolContext, command: str, directory: Path, *, in_background: bool) -> str | None:
    """Return why a command may not run, or None if the user allows it."""
    from hermes.agent.safety.commands import bare_command, dangers_in
    from hermes.agent.safety.environment import command_environment
    from hermes.agent.safety.paths import is_missing_here
    from hermes.agent.safety.protected_names import has_secret_name
    from hermes.agent.safety.similar_commands import kind_of

    def is_protected(path: str) -> bool:
        if is_missing_here(path, directory):
            return has_secret_name(f"/{path.casefold()}")
        try:
            return context.protected.reason(context.resolve_path(path, directory)) is not None
        except InvalidValue:  # too long for a path
            return False

    dangers = dangers_in(command, is_protected, command_environment(context.environ))
    if not directory.is_relative_to(context.directory.root) or is_protected("."):
        dangers.append("runs outside of the session's directory")
    where = f"in {make_path_visible(directory)}"
    detail = f"{make_visible(command)}\n\n{where}{' in the background' if in_background else ''}"
    if context.skills is not None and (names := sorted(context.skills.variables(context.environ))):
        detail += f"\nwith the variables {', '.join(names)} of the skills in use"
    verdict: Verdict = "allow"
    if context.grant is not None and context.grant.subject == command and _has_findings(context.grant.detail, detail):
        # The operator has seen what the scan of this very command had found.
        verdict, detail = _verdict_in(context.grant.detail.removeprefix(detail)), context.grant.detail
        findings = ""
    else:
        verdict, found = _scan(context, command)
        findings = _format_findings(dangers, found)
        detail += findings
    if context.cancellation.is_cancelled:
        return "not run: the user stopped this turn"
    first_line = fold_blanks(make_visible(command.strip().partition("\n")[0]))
    return context.refusal(
        ApprovalRequest(
            tool="terminal",
            summary=f"run {first_line if len(first_line) <= _MAX_SUMMARY else first_line[: _MAX_SUMMARY - 1] + '…'}",
            detail=detail,
            risk="high" if dangers or verdict != "allow" else "normal",
            subject=command,
            directory=str(directory),
            bare=bare_command(command),
            kind=kind_of(command, lambda word: _may_read(context, word, directory)),
            findings=findings,
            verdict=verdict,
        )
    )


def _scan(context: ToolContext, command: str) -> tuple[Verdict, list[str]]:
    """Return the verdict of the configured scanner, and what the user should know about it."""
    if context.scanner is None:
        return "allow", []
    root = context.directory.root
    project = None if is_too_wide(root, context.user_homes) else root
    report = context.scanner.scan(command, lambda: context.cancellation.is_cancelled, project)
    heading = [_HEADINGS[report.verdict]] if report.verdict in _HEADINGS else []
    notes = [report.note] if report.note and (heading or not report.findings) else []
    shown = [each.text for each in report.findings] if heading else []
    return report.verdict, [*heading, *notes, *shown]


def _verdict_in(findings: str) -> Verdict:
    """Return the verdict that findings begin with."""
    lines = findings.split("\n")
    return next((verdict for verdict, heading in _HEADINGS.items() if f"- {heading}" in lines), "allow")


def _format_findings(dangers: list[str], found: list[str]) -> str:
    """Return the paragraph about the dangers of a command; empty if there are none."""
    lines = [f"- it {each}" for each in dangers] + [f"- {each}" for each in found]
    return "\n\n" + "\n".join([FINDINGS, *lines]) if lines else ""


def _has_findings(detail: str, beginning: str) -> bool:
    """Whether a request is described by a beginning and, perhaps, the findings of a scan."""
    rest = detail.removeprefix(beginning)
    return detail.startswith(beginning) and (not rest or rest.startswith(f"\n\n{FINDINGS}\n"))


def _directory(context: ToolContext, cwd: str | None) -> Path:
    directory = context.directory.cwd if cwd is None else context.resolve_path(cwd).real
    if not directory.is_dir():
        raise NotFound(f"there is no directory {directory}", hint="pass another directory as cwd")
    return directory


def _limit_timeout(timeout_s: float) -> float:
    return max(0.0, min(timeout_s, MAX_TIMEOUT_S))


def _format_output(process: Process, state: str) -> str:
    """Return the new output of a process, followed by its state."""
    text = process.output.take(is_last=not process.is_running)
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}[{state}]"


def _format_state(process: Process) -> str:
    code = process.exit_code
    if code is None:
        return f"running, pid {process.pid}"
    ending = f"exit code {code}" if code >= 0 else f"ended by {_signal_name(-code)}"
    return (
        f"{ending}; its remaining child processes were ended: use background to keep them running"
        if process.has_left_some
        else ending
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _format_process(background: BackgroundProcess, now: float) -> str:
    age = max(0, int(now - background.started_at))
    return (
        f"{background.id}  {_format_state(background.process)}, started {age} s ago: {make_visible(background.command)}"
    )
