"""The recording of the first minute in README.md is what the program shows today."""

from __future__ import annotations

import re

from tools import recording
from tools.transcripts import new_home


def without_counts(picture: str) -> str:
    """Return a picture without numbers of tokens, which every change of a prompt changes, and without durations."""
    masked = re.sub(r"[\d,.]+k? (?=read|written|tokens)", "N ", picture)
    masked = re.sub(r"\b\d+s(?=</text>)", "N s", masked)
    return re.sub(r' textLength="[\d.]+"', "", masked)


def test_recording_is_up_to_date() -> None:
    with new_home() as home:
        drawn = recording.draw(recording.Typist(home).record())
    shown = recording.PICTURE.read_text("utf-8")
    assert without_counts(drawn) == without_counts(shown), "python -m tools.recording --write"


def test_recording_loads_nothing_and_runs_nothing() -> None:
    picture = recording.PICTURE.read_text("utf-8")
    assert not re.search(r"<script|<image|<foreignObject|\bon\w+=|url\(|@import", picture)
    assert set(re.findall(r'(?:href|src)="([^"]*)"', picture)) <= {f"#l{number}" for number in range(1_000)}
    assert re.findall(r"https?://[^\s\"<]+", picture) == ["http://www.w3.org/2000/svg"]
