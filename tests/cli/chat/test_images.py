"""Images in a terminal chat: attached to the message, shown as `[image]`, and refused for models that cannot see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.stored import sessions
from tests.cli.chat.terminal import CTRL_D, Terminal
from tests.cli.chat.test_references import sent
from tests.cli.conftest import Hermes
from tests.support.images import png
from tests.support.modelserver import ModelServer, Say


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a picture."""
    project = tmp_path / "person" / "project"
    project.mkdir(parents=True)
    (project / "red.png").write_bytes(png())
    return project


def test_image_is_sent_and_shown_as_a_word(hermes: Hermes, project: Path) -> None:
    hermes.home.mkdir(exist_ok=True)
    with ModelServer(Say("It is red.")) as server:
        config = server.config.replace("}", ", sees_images: {test-model: true}}")
        (hermes.home / "config.yaml").write_text(config)
        done = sent(hermes, project, "-q", "What colour is @file:red.png?")
    assert (done.returncode, done.stdout) == (0, "It is red.\n")
    assert "[attached: 1 reference, about 1" in done.stderr
    text, image, context = server.requests[0].messages[1]["content"]
    assert text == {"type": "text", "text": "What colour is @file:red.png?"}
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert context["text"].endswith("@file:red.png (PNG image, 3 x 2, attached to the message)")
    (row,) = sessions(hermes)
    assert "What colour is @file:red.png? [image]" in hermes("sessions", "show", row["id"]).stdout
    page = project / "talk.html"
    assert hermes("sessions", "export", str(page)).returncode == 0
    assert "[image]" in page.read_text()
    assert "base64" not in page.read_text()


def test_dragged_image_for_a_model_that_cannot_see_is_a_note(hermes: Hermes, project: Path) -> None:
    with Terminal(hermes, cwd=project, columns=120, HOME=str(project.parent)) as terminal:
        terminal.enter(f"!say ok '{project}/red.png'").until("◆ ok").until_prompt()
        assert "was not attached: the model offline cannot see images" in " ".join(terminal.text.split())
        terminal.type(CTRL_D).until_over()


def test_unknown_model_is_explained(hermes: Hermes, project: Path) -> None:
    hermes.home.mkdir(exist_ok=True)
    with ModelServer(Say("I see nothing.")) as server:
        (hermes.home / "config.yaml").write_text(server.config)
        done = sent(hermes, project, "-q", "What colour is @file:red.png?")
    assert "set `model.sees_images: {test-model: true}` in config.yaml" in " ".join(done.stderr.split())
    assert "image_url" not in str(server.requests[0].messages)
