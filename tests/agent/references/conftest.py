"""A session of the terminal whose references a test reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.references.attach import Attached, ReferenceReader
from tests.agent.tools.conftest import bench, store, stores
from tests.agent.tools.test_repositories import Repository
from tests.agent.tools.workbench import Workbench

__all__ = ["bench", "repo", "store", "stores"]

CONTEXT_TOKENS = 100_000


def read(bench: Workbench, text: str, context_tokens: int = CONTEXT_TOKENS) -> Attached:
    """Return what the references in a text name."""
    return ReferenceReader(bench.context, context_tokens).read(text)


def block_of(bench: Workbench, reference: str) -> str:
    """Return the content of the only block, without its label and its fences."""
    attached = read(bench, reference)
    assert attached.remarks == []
    return attached.text.split("```", 2)[1].partition("\n")[2]


def remark_on(bench: Workbench, reference: str) -> str:
    """Return why the only reference was not attached."""
    attached = read(bench, reference)
    assert attached.count == 0
    (remark,) = attached.remarks
    assert remark in attached.text
    return remark.partition(" was not attached: ")[2]


@pytest.fixture
def repo(bench: Workbench, tmp_path: Path) -> Repository:
    """A repository with one commit in the session's directory, and a program that leaves a mark when it runs."""
    repo = Repository(bench.work, tmp_path / "outside")
    repo.outside.mkdir()
    program = Path(repo.program)
    program.write_text(f"#!/bin/sh\n: > {repo.mark}\n")
    program.chmod(0o755)
    repo.begin()
    return repo
