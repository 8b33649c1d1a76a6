"""How much of the model's context references may use."""

from __future__ import annotations

import pytest

from hermes.agent.references.attach import ReferenceReader
from hermes.agent.references.limits import MAX_REFERENCES, Budget, TooMuchContext
from hermes.errors import InvalidValue
from tests.agent.references.conftest import read
from tests.agent.tools.workbench import Workbench


@pytest.mark.parametrize(
    ("tokens", "is_warned", "is_refused"),
    [(0, False, False), (250, False, False), (251, True, False), (500, True, False), (501, True, True)],
)
def test_share_of_the_context_decides(tokens: int, is_warned: bool, is_refused: bool) -> None:
    budget = Budget(1_000)
    if is_refused:
        with pytest.raises(TooMuchContext):
            budget.spend("abcd" * tokens)
        assert budget.spent == 0
    else:
        assert budget.spend("abcd" * tokens) == tokens
        assert (budget.warning is not None) == is_warned


def test_unknown_context_is_the_usual_one() -> None:
    assert Budget(None).max_tokens == 64_000


def test_large_context_is_attached_with_a_warning(bench: Workbench) -> None:
    (bench.work / "a.txt").write_text("word " * 300)
    attached = read(bench, "@file:a.txt", 1_000)
    assert attached.count == 1
    (warning,) = attached.remarks
    share = f"about {attached.tokens} tokens, which is {attached.tokens // 10} % of what the model can read (1000)"
    assert warning == f"the attached context has {share}"


@pytest.mark.parametrize("text", ["@file:a.txt", "@file:a.txt:1-2", "@file:b.txt @file:b.txt:1 @file:b.txt:1-1"])
def test_too_large_context_is_refused(bench: Workbench, text: str) -> None:
    (bench.work / "a.txt").write_text(f"{'word ' * 500}\n{'word ' * 500}\n")
    (bench.work / "b.txt").write_text("word " * 300)
    with pytest.raises(InvalidValue, match="more than 50 % of what the model can read") as error:
        read(bench, text, 1_000)
    assert "nothing was sent" in error.value.message


def test_huge_file_is_refused_without_reading_it(bench: Workbench) -> None:
    with (bench.work / "huge.txt").open("wb") as file:
        file.write(b"text\n" * 10_000)
        file.truncate(1 << 40)
    with pytest.raises(InvalidValue, match="more than 50 %"):
        read(bench, "@file:huge.txt")


def test_lines_at_the_start_of_a_huge_file_are_attached(bench: Workbench) -> None:
    with (bench.work / "huge.txt").open("wb") as file:
        file.write(b"text\n" * 10_000)
        file.truncate(1 << 40)
    assert read(bench, "@file:huge.txt:2-3").count == 1
    late = read(bench, "@file:huge.txt:20000")
    assert "too far into the file" in late.remarks[0]


def test_number_of_references_is_limited(bench: Workbench) -> None:
    (bench.work / "a.txt").write_text("one\n" * 50)
    attached = read(bench, " ".join(f"@file:a.txt:{number}" for number in range(1, MAX_REFERENCES + 3)))
    assert attached.count == MAX_REFERENCES
    assert attached.remarks == [
        f"@file:a.txt:{number} was not attached: a message can have {MAX_REFERENCES} references" for number in (21, 22)
    ]


def test_time_for_all_references_is_limited(bench: Workbench) -> None:
    (bench.work / "a.txt").write_text("one\n")
    late = ReferenceReader(bench.context, 1_000, seconds=-1).read("@file:a.txt")
    assert late.remarks == ["@file:a.txt was not attached: reading the references took longer than -1 s"]


def test_stopped_turn_reads_nothing(bench: Workbench) -> None:
    (bench.work / "a.txt").write_text("one\n")
    bench.cancellation.cancel()
    assert read(bench, "@file:a.txt").remarks == ["@file:a.txt was not attached: you stopped this turn"]
