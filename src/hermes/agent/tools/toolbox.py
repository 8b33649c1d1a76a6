"""The built-in tools."""

from __future__ import annotations

from hermes.agent.tools.editing.tools import edit_file, write_file
from hermes.agent.tools.memory import memory
from hermes.agent.tools.read_file import read_file
from hermes.agent.tools.registry import Registry
from hermes.agent.tools.session_search import session_search
from hermes.agent.tools.shell.terminal import process, terminal
from hermes.agent.tools.skills import skill_manage, skill_view
from hermes.agent.tools.web import web_extract, web_search

TOOLBOX = Registry(
    [
        *(edit_file, memory, process, read_file, session_search, skill_manage, skill_view, terminal),
        *(web_extract, web_search, write_file),
    ]
)
