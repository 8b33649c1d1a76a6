"""The registry of tools: their schemas for the model, and running a call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import get_type_hints

from hermes.agent.history.text_limits import limit_text, valid_text
from hermes.agent.models.model import ToolCall, ToolSchema
from hermes.agent.safety.approval import ApprovalDeferred
from hermes.agent.tools.arguments import parse_arguments, usage
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.results import ToolResult, failure
from hermes.agent.tools.schema import Schema, parameters_of
from hermes.agent.tools.toolsets import NEED_DIRECTORY
from hermes.errors import HermesError, InvalidValue
from hermes.log import warn

Function = Callable[..., str | ToolResult]

MORE = "ask for less at once"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call."""

    name: str
    toolset: str
    description: str
    parameters: Schema
    function: Function
    """Takes a `ToolContext`, then arguments by name."""
    more: str = MORE
    """How a model can see the part that did not fit into a result."""
    guidance: str = ""
    """When to use the tool, for the system prompt."""

    @property
    def schema(self) -> ToolSchema:
        """The description of the tool for a model."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def tool(*, toolset: str, more: str = MORE, guidance: str = "") -> Callable[[Function], Tool]:
    """Make a tool of a function; a model sees its name, its signature and the first paragraph of its docstring.

    A `ToolContext` as its first parameter is passed by the registry.
    """

    def decorate(function: Function) -> Tool:
        paragraph = (function.__doc__ or "").strip().partition("\n\n")[0]
        if not paragraph:
            raise TypeError(f"{function.__name__} needs a docstring")
        return Tool(
            name=function.__name__,
            toolset=toolset,
            description=" ".join(paragraph.split()),
            parameters=parameters_of(function, without=ToolContext),
            function=function if _takes_context(function) else lambda _, **arguments: function(**arguments),
            more=more,
            guidance=guidance,
        )

    return decorate


class Registry:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for each in sorted(tools, key=lambda each: each.name):
            if each.name in self._tools:
                raise ValueError(f"two tools have the name {each.name}")
            self._tools[each.name] = each

    @property
    def toolsets(self) -> frozenset[str]:
        """The names of all toolsets."""
        return frozenset(each.toolset for each in self._tools.values())

    def names(self, toolsets: Collection[str]) -> frozenset[str]:
        """Return the names of the tools of these toolsets."""
        return frozenset(each.name for each in self._tools_of(toolsets))

    def schemas(self, toolsets: Collection[str]) -> list[ToolSchema]:
        """Return the descriptions of the tools of these toolsets, always in the same order."""
        return [each.schema for each in self._tools_of(toolsets)]

    def guidance(self, toolsets: Collection[str]) -> str:
        """Return when to use the tools of these toolsets, for the system prompt."""
        return "\n".join(each.guidance for each in self._tools_of(toolsets) if each.guidance)

    def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run a call and return a result for the model; failures become results too."""
        found = self._tools.get(call.name)
        if found is None or found.toolset not in context.toolsets:
            return _fit_for_model(self._unknown(call.name, context.toolsets))
        if found.toolset in NEED_DIRECTORY and context.working_directory is None:
            return failure("this conversation has no directory of its own, so files and commands cannot be used in it")
        if context.cancellation.is_cancelled:
            return failure("not run: the user stopped this turn")
        try:
            arguments = parse_arguments(call.arguments, found.parameters)
        except InvalidValue as wrong:
            return _fit_for_model(failure(wrong.message, usage=usage(found.name, found.parameters)))
        try:
            return _fit_for_model(_as_result(found.function(replace(context, call=call), **arguments)), found.more)
        except ApprovalDeferred as deferred:
            return _fit_for_model(ToolResult(deferred.for_model))
        except Exception as error:  # noqa: BLE001 - no failure of a tool ends the conversation
            return _fit_for_model(failure(_describe_error(error, found.name, context.environ)))

    def _tools_of(self, toolsets: Collection[str]) -> list[Tool]:
        return [each for each in self._tools.values() if each.toolset in toolsets]

    def _unknown(self, name: str, toolsets: Collection[str]) -> ToolResult:
        from difflib import get_close_matches

        names = [each.name for each in self._tools_of(toolsets)]
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names) or 'none'}"
        return failure(f"there is no tool {name!r}; {hint}")


def _takes_context(function: Callable[..., object]) -> bool:
    return ToolContext in get_type_hints(function).values()


def _as_result(answer: str | ToolResult) -> ToolResult:
    if isinstance(answer, ToolResult):
        return answer
    if not isinstance(answer, str):
        raise TypeError(f"the tool returned {type(answer).__name__} instead of text")
    return ToolResult(answer)


def _fit_for_model(result: ToolResult, more: str = MORE) -> ToolResult:
    return replace(result, text=limit_text(valid_text(result.text), more=more))


def _describe_error(error: Exception, name: str, environ: Mapping[str, str]) -> str:
    """Describe an error for a model, without secrets; an unexpected one is logged too."""
    from hermes.agent.safety.redaction import redact

    if isinstance(error, HermesError):
        text = str(error)
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    else:
        text = f"{type(error).__name__}: {error}"
        warn(__name__, "the tool %s failed with %s", name, type(error).__name__)
    return redact(text, environ)
