"""The tools `write_file` and `edit_file`: a change is shown to the user first, and made exactly as shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import tool
from hermes.agent.tools.results import ToolResult, failure
from hermes.errors import Conflict, InvalidValue, NotFound
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.agent.safety.approval import ApprovalRequest
    from hermes.agent.safety.diffs import FileDiff
    from hermes.agent.safety.paths import ResolvedPath
    from hermes.agent.tools.editing.file_change import FileChange
    from hermes.agent.tools.editing.text_content import TextContent

_EXECUTABLE = 0o111


@tool(toolset="files")
def edit_file(
    context: ToolContext,
    path: Annotated[str, "The file; relative to the working directory unless absolute."],
    old: Annotated[str, "The exact text to replace, with its blanks and without line numbers; it must occur once."],
    new: Annotated[str, "The text to put there."],
    replace_all: Annotated[bool, "Replace every occurrence of old."] = False,
) -> str | ToolResult:
    """Replace an exact part of a text file in the working directory; the user is shown the change and asked."""
    from hermes.agent.tools.editing.replacement import replace_part

    def edited(content: TextContent | None) -> str:
        if content is None:
            raise NotFound(f"there is no file {path}", hint="write_file makes a new file")
        return replace_part(content.text, old, new, is_everywhere=replace_all)

    return _change(context, path, edited)


@tool(toolset="files")
def write_file(
    context: ToolContext,
    path: Annotated[str, "The file; relative to the working directory unless absolute."],
    content: Annotated[str, "The complete new text of the file."],
) -> str | ToolResult:
    """Make a text file in the working directory, or replace its whole content; the user is shown the change and asked.

    Missing directories are made.
    """
    return _change(context, path, lambda _: content)


def _change(context: ToolContext, path: str, edit: Callable[[TextContent | None], str]) -> str | ToolResult:
    """Plan a change, ask for permission, make it, and record it for `/undo`."""
    from hermes.agent.safety.changeable_places import refusal_to_change
    from hermes.agent.tools.editing.file_change import FileChange, make_change, read_state
    from hermes.agent.tools.editing.journal import marked_change
    from hermes.agent.tools.editing.text_content import TextContent

    place = context.resolve_path(path)
    reason = refusal_to_change(place, context.directory.root, context.protected, context.user_homes)
    if reason:
        return failure(
            f"{path} cannot be changed, because {reason}. No permission can change this; do not try another way."
        )
    before = read_state(place.real)
    content = None if before is None else TextContent.parse(before.data)
    text = edit(content)
    after = (content or TextContent()).encode(text)
    if before is not None and after == before.data:
        raise InvalidValue("the file has exactly this content already; nothing was written")
    change = FileChange(place.real, before, after)
    request, diff = _request(context, place, change, content, TextContent.parse(after))
    denied = context.refusal(request)
    if denied is not None:
        return failure(denied)
    if context.cancellation.is_cancelled:
        raise Conflict("the user stopped this turn; nothing was written")
    ending = _record(context, change, content)
    make_change(change)
    done = _done(path, diff, is_new=before is None)
    return ToolResult(
        f"[{done}{ending}", end=done if marked_change(ending) else f"{done}; it cannot be undone", diff=diff
    )


def _request(
    context: ToolContext, place: ResolvedPath, change: FileChange, before: TextContent | None, after: TextContent
) -> tuple[ApprovalRequest, FileDiff]:
    """Return the question about a change, and what the change does."""
    from hermes.agent.safety.approval import ApprovalRequest, Decision
    from hermes.agent.safety.changeable_places import runs_later
    from hermes.agent.safety.diffs import compare
    from hermes.agent.safety.paths import is_too_wide
    from hermes.agent.safety.permits import EDITING
    from hermes.agent.safety.visible_text import make_path_visible

    diff = compare(place.real.name, before.text if before else "", after.text)
    shown = make_path_visible(place.real)
    is_program = change.before is not None and bool(change.before.mode & _EXECUTABLE)
    notes = after.stored_notes()
    if place.named != place.real:
        notes.append(f"given as {make_path_visible(place.named)}")
    if change.new_directories:
        notes.append(f"with the new {_directories(len(change.new_directories))} {make_path_visible(place.real.parent)}")
    if is_program:
        notes.append("it is a program: its mode allows to run it")
    if runs_later(place.real):
        notes.append("other programs read or run a file with this name by themselves")
    is_risky = is_program or runs_later(place.real)
    name = make_path_visible(place.real.relative_to(context.directory.root))
    summary = f"{'make' if change.before is None else 'change'} {name}"
    about = "\n".join([shown, _size(diff), *(f"({each})" for each in notes)])
    request = ApprovalRequest(
        tool=EDITING,
        summary=summary,
        detail=f"{about}\n\n{diff.text}",
        risk="high" if is_risky else "normal",
        subject=str(place.real),
        longest=Decision.ONCE if is_too_wide(context.directory.root, context.user_homes) else Decision.SESSION,
        diff=diff,
    )
    return request, diff


def _record(context: ToolContext, change: FileChange, before: TextContent | None) -> str:
    """Store the former content before the change is made, and return the end of the result, by which it is found."""
    import os

    from hermes.agent.tools.editing.journal import ChangeJournal, RecordedChange, checksum, mark

    assert change.after is not None
    change_id = os.urandom(8).hex()
    former = None if change.before is None else change.before.data.decode()
    recorded = RecordedChange(
        change_id, change.path, former, checksum(change.after), tuple(change.new_directories) if before is None else ()
    )
    if ChangeJournal(context.home).add(context.session_id, recorded):
        return mark(change_id)
    return "; it cannot be undone]"


def _done(path: str, diff: FileDiff, *, is_new: bool) -> str:
    return f"{'made' if is_new else 'changed'} {path}: {_size(diff)}"


def _size(diff: FileDiff) -> str:
    if not diff.removed:
        return f"{plural(diff.added, 'line')} added"
    if not diff.added:
        return f"{plural(diff.removed, 'line')} removed"
    return f"{plural(diff.added, 'line')} added, {diff.removed} removed"


def _directories(count: int) -> str:
    return "directory" if count == 1 else "directories"
