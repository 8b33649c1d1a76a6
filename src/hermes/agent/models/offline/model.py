"""The offline model: always available, needs no network and no key, cannot reason, but searches past sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hermes.agent.history.attachments import without_attached
from hermes.agent.history.notes import without_notes
from hermes.agent.history.token_estimate import tokens_of, tokens_of_conversation
from hermes.agent.models.choice import OFFLINE
from hermes.agent.models.model import (
    Cancellation,
    Event,
    Message,
    ReasoningDelta,
    Reply,
    TextDelta,
    ToolCall,
    ToolSchema,
    Usage,
)
from hermes.agent.models.offline.script import Script, read_script
from hermes.agent.models.offline.topic import is_about_the_past, topic_of
from hermes.query.analyze import words
from hermes.query.snippet import CLOSE, OPEN
from hermes.state.messages.transcript import shorten
from hermes.state.rows import flatten_text, one_line

SEARCH = "session_search"

INTRODUCTION = (
    "I am the offline model of Hermes: no language model is in use, so I cannot reason, but I can search past sessions."
    " To use a real model, run `hermes setup`, or set OPENAI_API_KEY, OPENROUTER_API_KEY or ANTHROPIC_API_KEY."
)
ABILITIES = (
    "Ask about a topic of an earlier session, and I search for it; ask for recent sessions, and I list them. All your"
    " messages are stored, and a real model can continue from here."
)
NO_SEARCH = "I cannot search past sessions here, and that is all I can do."

_MAX_WORDS = 12
_WIDTH = 160
_MAX_RESULT_CHARACTERS = 2_000
_MAX_QUOTED = 3

_PIECE = re.compile(r"\s*\S+\s*|\s+")


class ToolOutput(NamedTuple):
    """The result of a tool call."""

    name: str
    output: str


class OfflineModel:
    """A model that answers from past sessions, or as a script says; the same input always gives the same answer."""

    name = OFFLINE
    provider = OFFLINE
    base_url: str | None = None
    context_tokens: int | None = None

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], cancellation: Cancellation
    ) -> Iterator[Event]:
        """Yield the answer in small pieces, like a remote model."""
        script = write_script(messages, tools)
        if script.reasoning and not cancellation.is_cancelled:
            yield ReasoningDelta(script.reasoning)
        for piece in _PIECE.findall(script.text):
            if cancellation.is_cancelled:
                return
            yield TextDelta(piece)
            if script.pause_s:
                cancellation.wait(script.pause_s)
        if cancellation.is_cancelled:
            return
        if script.failure is not None:
            raise script.failure
        yield _reply(script, messages)


def write_script(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Script:
    """Return the answer to a conversation, as a script."""
    turn = _last_turn(messages)
    question = _typed(turn[0]) if turn else ""
    results = _results(turn)
    scripted = read_script(question)
    if scripted is not None:
        return Script(text=_report_results(results)) if results else scripted
    script = (
        _answer_after_search(question, results, _earlier_user_texts(messages, turn))
        if results
        else _answer_first(question, tools)
    )
    is_new = not any(each.get("role") == "assistant" and flatten_text(each.get("content")) for each in messages)
    if script.text and is_new:
        script.text = f"{INTRODUCTION}\n\n{script.text}"
    return script


def _answer_first(question: str, tools: Sequence[ToolSchema]) -> Script:
    """Search for the topic of the question; without one, list recent sessions or explain what this model can do."""
    if not any(tool.get("function", tool).get("name") == SEARCH for tool in tools):
        return Script(text=NO_SEARCH)
    topic = topic_of(question)[:_MAX_WORDS]
    if topic:
        return _search({"query": " ".join(topic)})
    return _search({}) if is_about_the_past(question) else Script(text=ABILITIES)


def _answer_after_search(question: str, results: Sequence[ToolOutput], earlier: Sequence[str]) -> Script:
    """Report the search results; an empty search is repeated once, more loosely."""
    found = _parse_json(results[-1].output)
    if found is None or not found.get("success"):
        reason = found.get("error") if found else None
        return Script(text=f"I could not search past sessions: {reason or shorten(results[-1].output, _WIDTH)}")
    topic = " ".join(topic_of(question)[:_MAX_WORDS])
    sessions = [each for each in found.get("results") or () if isinstance(each, dict)]
    if not sessions and topic and len(results) == 1:
        return _search({"query": _loosen(topic)})
    if not sessions:
        return Script(text=_nothing_about(topic, earlier))
    if not topic:
        head = "These sessions were active last:"
    elif len(results) == 1 and _has_all_words(found):
        head = f"This is what past sessions say about {topic}:"
    else:
        head = f"No past session has all of {topic}; these come close:"
    return Script(text="\n\n".join([head, *map(_format_session, sessions)]))


def _has_all_words(found: Mapping[str, Any]) -> bool:
    """Whether a message with all words of the search was found."""
    search = found.get("search")
    return not isinstance(search, dict) or search.get("path") != "coverage"


def _nothing_about(topic: str, earlier: Sequence[str]) -> str:
    """Quote matching messages of this session, or say that nothing was found."""
    if not topic:
        return "There are no past sessions."
    wanted = set(words(topic))
    here = sorted(earlier, key=lambda text: len(wanted & set(words(text))), reverse=True)[:_MAX_QUOTED]
    quoted = [f"- {one_line(text, _WIDTH)}" for text in here if wanted & set(words(text))]
    if quoted:
        return "\n".join([f"No past session says anything about {topic}, but here you wrote:", "", *quoted])
    return f"I found nothing about {topic} in past sessions. Your messages here are stored and can be found later."


def _report_results(results: Sequence[ToolOutput]) -> str:
    """Return the results of the tools that a script called."""
    return "\n".join(f"{each.name} returned: {shorten(each.output, _MAX_RESULT_CHARACTERS)}" for each in results)


def _loosen(topic: str) -> str:
    """Return a query for any of the words, and for any word that begins like one of them."""
    stems = dict.fromkeys(
        f"{each.removesuffix('s')}*" if each.isascii() and len(each) > 3 else each for each in words(topic)
    )
    return " OR ".join(list(stems)[:_MAX_WORDS])


def _search(arguments: Mapping[str, str]) -> Script:
    return Script(calls=[(SEARCH, json.dumps(arguments, ensure_ascii=False))])


def _format_session(session: Mapping[str, Any]) -> str:
    title = session.get("title") or "Untitled"
    excerpt = str(session.get("snippet") or session.get("preview") or "").replace(OPEN, "").replace(CLOSE, "")
    lines = [
        f"- {one_line(title, _WIDTH)} ({session.get('when')}, {session.get('source')})",
        f"  {one_line(excerpt, _WIDTH)}" if excerpt else "",
        f"  /resume {session.get('session_id')}",
    ]
    return "\n".join(line for line in lines if line)


def _earlier_user_texts(messages: Sequence[Message], turn: Sequence[Message]) -> list[str]:
    """The messages of the user before this turn, the latest first."""
    earlier = messages[: len(messages) - len(turn)]
    return [flatten_text(each.get("content")) for each in reversed(earlier) if each.get("role") == "user"]


def _typed(message: Message) -> str:
    """Return the text of the user in a message, without notes and attached context."""
    return without_attached(without_notes(flatten_text(message.get("content"))))


def _last_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """The last message of the user and all messages after it; notes are not messages of the user."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") == "user" and _typed(messages[place]):
            return messages[place:]
    return ()


def _results(turn: Sequence[Message]) -> list[ToolOutput]:
    """The results of the tools that were called in this turn."""
    names: dict[str, str] = {}
    results: list[ToolOutput] = []
    for message in turn:
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
        if message.get("role") == "tool":
            name = names.get(message.get("tool_call_id", ""), "a tool")
            results.append(ToolOutput(name, flatten_text(message.get("content"))))
    return results


def _parse_json(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _reply(script: Script, messages: Sequence[Message]) -> Reply:
    written = "".join((script.reasoning, script.text, *(name + arguments for name, arguments in script.calls)))
    usage = Usage(
        input_tokens=tokens_of_conversation(messages),
        output_tokens=tokens_of(written),
        reasoning_tokens=tokens_of(script.reasoning),
    )
    calls = tuple(
        ToolCall(f"offline_{len(messages)}_{number}", name, arguments)
        for number, (name, arguments) in enumerate(script.calls, start=1)
    )
    return Reply(
        text=script.text,
        tool_calls=calls,
        reasoning=script.reasoning or None,
        finish_reason="tool_calls" if calls else "stop",
        usage=usage,
        model=OFFLINE,
    )
