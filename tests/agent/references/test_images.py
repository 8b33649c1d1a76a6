"""Images in messages: recognized by their content, limited, and sent to models that see."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.history.images import MAX_SENT_CHARACTERS, NOT_SENT, UNSEEN, Image
from hermes.agent.history.projection import project
from hermes.agent.models.model import Model
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.models.sight import sees_images, why_no_images
from hermes.agent.references.attach import Attached, ReferenceReader
from hermes.agent.references.images import find_image_paths
from hermes.cli.chat.recap import build_recap
from hermes.config import DisplayConfig
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.asking import choice_of, endpoint
from tests.agent.references.conftest import read, remark_on
from tests.agent.talking import CONFIG, agent_at, stored
from tests.agent.tools.workbench import Workbench
from tests.support.images import GIF, JPEG, LOSSLESS_WEBP, WEBP, png
from tests.support.modelserver import ModelServer, Say


class TestReading:
    @pytest.mark.parametrize("name", ["picture.png", "picture.txt", "picture"])
    @pytest.mark.parametrize(
        ("data", "label"),
        [
            (png(), "PNG image, 3 x 2"),
            (JPEG, "JPEG image, 1 x 1"),
            (GIF, "GIF image, 1 x 1"),
            (WEBP, "WEBP image, 1 x 1"),
            (LOSSLESS_WEBP, "WEBP image, 1 x 1"),
        ],
    )
    def test_content_says_what_an_image_is(self, bench: Workbench, name: str, data: bytes, label: str) -> None:
        (bench.work / name).write_bytes(data)
        attached = read(bench, f"what is @file:{name}?")
        assert attached.remarks == []
        assert attached.text.endswith(f"@file:{name} ({label}, attached to the message)")
        (image,) = attached.images
        assert image.data == data
        assert attached.tokens > 1_000

    def test_text_with_the_name_of_an_image_is_text(self, bench: Workbench) -> None:
        (bench.work / "a.png").write_text("no picture\n")
        attached = read(bench, "@file:a.png")
        assert (attached.images, attached.remarks) == ([], [])
        assert "no picture" in attached.text

    @pytest.mark.parametrize(
        "data",
        [
            *(png()[:40], png()[:-12], JPEG[:-30], GIF[:8], WEBP[:-10], b"\x89PNG\r\n\x1a\n" + b"\0" * 99),
            JPEG[:2] + b"\xff" * 20_000 + JPEG[2:],
        ],
    )
    def test_damaged_image_is_not_attached(self, bench: Workbench, data: bytes) -> None:
        (bench.work / "a.png").write_bytes(data)
        assert remark_on(bench, "@file:a.png") == "the image is damaged or cut off"

    def test_large_image_is_not_attached(self, bench: Workbench) -> None:
        (bench.work / "a.png").write_bytes(png(padding=5_000_000))
        assert "; the limit is 5000000" in remark_on(bench, "@file:a.png")
        (bench.work / "a.png").write_bytes(png(8_001, 1))
        assert remark_on(bench, "@file:a.png") == "the image has 8001 x 1 pixels; a side can have 8000"

    def test_images_of_a_message_are_limited_together(self, bench: Workbench) -> None:
        for name in "abc":
            (bench.work / f"{name}.png").write_bytes(png(padding=4_000_000))
        attached = read(bench, "@file:a.png @file:b.png @file:c.png")
        assert [len(each.data) > 4_000_000 for each in attached.images] == [True, True]
        assert attached.remarks == [
            "@file:c.png was not attached: the images of a message can have 10000000 bytes together"
        ]

    def test_images_count_for_the_limit_of_the_model(self, bench: Workbench) -> None:
        (bench.work / "a.png").write_bytes(png())
        assert (
            read(bench, "@file:a.png", context_tokens=4_000).remarks[0].startswith("the attached context has about 1")
        )


class TestPasted:
    @pytest.mark.parametrize(
        ("text", "paths"),
        [
            ("/home/ada/a.png", ["/home/ada/a.png"]),
            ("look: /home/ada/a.PNG, please", ["/home/ada/a.PNG"]),
            ("'/home/ada/my picture.jpg' and \"/b.webp\"", ["/home/ada/my picture.jpg", "/b.webp"]),
            (r"/home/ada/my\ picture\(1\).jpeg what?", ["/home/ada/my picture(1).jpeg"]),
            ("file:///home/ada/my%20picture.gif", ["/home/ada/my picture.gif"]),
            ("~/a.png", ["~/a.png"]),
            ("a.png ./b.png https://example.org/c.png x/d.png /e.svg /f.txt", []),
        ],
    )
    def test_absolute_paths_are_found(self, text: str, paths: list[str]) -> None:
        assert [path for _, path in find_image_paths(text)] == paths

    def test_dragged_image_is_attached_and_a_mentioned_one_is_not(self, bench: Workbench) -> None:
        (bench.work / "a b.png").write_bytes(png())
        attached = read(bench, f"see '{bench.work}/a b.png', not {bench.work}/missing.png")
        assert (len(attached.images), attached.remarks) == (1, [])
        assert bench.person.asked == []

    def test_image_outside_the_directory_needs_permission(self, bench: Workbench, tmp_path: Path) -> None:
        (tmp_path / "a.png").write_bytes(png())
        assert len(read(bench, str(tmp_path / "a.png")).images) == 1
        assert [each.summary for each in bench.person.asked] == [f"read {tmp_path}/a.png"]
        bench.change(approve=None)
        assert read(bench, str(tmp_path / "a.png")).images == []

    def test_secret_is_no_image(self, bench: Workbench) -> None:
        secret = bench.context.home.parent / ".ssh" / "key.png"
        secret.parent.mkdir()
        secret.write_bytes(png())
        attached = read(bench, str(secret))
        assert attached.images == []
        assert "no permission changes this" in attached.remarks[0]

    def test_path_in_a_chat_is_text(self, bench: Workbench) -> None:
        (bench.work / "a.png").write_bytes(png())
        bench.change(source="telegram")
        assert read(bench, f"{bench.work}/a.png") == Attached()

    def test_long_hostile_text_is_searched_quickly(self) -> None:
        assert find_image_paths(".png" + "'/" * 200_000) == []
        assert find_image_paths(".png " + "/\\" * 200_000) == []


class Named(OfflineModel):
    """A model with a name."""

    def __init__(self, name: str, provider: str = "custom") -> None:
        self.name = name
        self.provider = provider


class TestSight:
    @pytest.mark.parametrize(
        ("name", "sees"),
        [
            *((each, True) for each in ("gpt-5-mini", "openai/gpt-4o", "claude-sonnet-4-5", "google/gemini-2.5-pro")),
            *(
                (each, True)
                for each in ("o3", "o4-mini", "qwen2.5-vl-72b", "qwen2.5vl:7b", "llava:13b", "llama-3.2-90b-vision")
            ),
            *(
                (each, False)
                for each in ("gpt-3.5-turbo", "o3-mini", "deepseek-reasoner", "gpt-oss-120b", "llama3.1:8b")
            ),
            *((each, None) for each in ("test-model", "house-model", "solo3x")),
        ],
    )
    def test_known_names_say_whether_a_model_sees(self, name: str, sees: bool | None) -> None:
        model: Model = Named(name)
        assert sees_images(model, {}) is sees
        assert sees_images(model, {name: not sees}) is (not sees)

    def test_unknown_model_is_explained_with_the_setting(self) -> None:
        assert "set `model.sees_images: {house-model: true}` in config.yaml" in why_no_images(Named("house-model"), {})
        assert why_no_images(Named("o3-mini"), {}) == "the model o3-mini cannot see images"
        assert why_no_images(Named("gpt-5"), {}) == ""
        assert why_no_images(OfflineModel(), {}) == "the model offline cannot see images"

    def test_image_for_a_blind_model_is_a_remark(self, bench: Workbench) -> None:
        (bench.work / "a.png").write_bytes(png())
        attached = ReferenceReader(bench.context, None, why_no_images="the model x cannot see images").read(
            "@file:a.png"
        )
        assert attached.images == []
        assert attached.remarks == ["@file:a.png was not attached: the model x cannot see images"]


IMAGE = Image("image/png", 3, 2, png())
ADDRESS = f"data:image/png;base64,{b64encode(png()).decode()}"
DATA = "data:image/png;base64,"
PART = {"type": "image_url", "image_url": {"url": ADDRESS}}


class TestSending:
    def test_image_is_stored_with_the_text_and_sent_in_every_turn(self, home: Path, store: SessionDBProvider) -> None:
        with ModelServer(Say("Red."), Say("Still red.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("What colour? @file:a.png", images=[IMAGE])
            conversation.say("sure?")
        content = [{"type": "text", "text": "What colour? @file:a.png"}, PART]
        assert stored(conversation)[0] == ("user", content)
        assert [request.messages[1]["content"] for request in server.requests] == [content, content]
        (entry, *_) = build_recap(conversation.history, DisplayConfig()).entries
        assert entry.text == "What colour? @file:a.png [image]"
        row = store.get_session(conversation.session_id)
        assert row is not None
        assert row["preview"] == "What colour? @file:a.png"
        assert store.search_messages("base64") == []
        assert conversation.undo(2).text == "What colour? @file:a.png"

    def test_model_that_cannot_see_gets_a_text_instead(self, home: Path, store: SessionDBProvider) -> None:
        with ModelServer(Say("Red."), Say("What?")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("What colour?", images=[IMAGE])
            conversation.use(endpoint(server, choice=choice_of(server, name="gpt-3.5-turbo")))
            conversation.say("sure?")
        assert server.requests[1].messages[1]["content"] == f"What colour?\n\n{UNSEEN}"

    def test_setting_says_that_a_model_is_blind(self, home: Path, store: SessionDBProvider) -> None:
        config = replace(CONFIG, model=replace(CONFIG.model, sees_images={"test-model": False}))
        with ModelServer(Say("What?")) as server:
            conversation = Conversation.start(agent_at(server, store, home, config), asker=EVERYBODY)
            conversation.say("What colour?", images=[IMAGE])
        assert server.requests[0].messages[1]["content"] == f"What colour?\n\n{UNSEEN}"

    @pytest.mark.parametrize(
        "address",
        ["http://169.254.169.254/latest/meta-data/", "https://example.org/seen.png", "file:///etc/passwd", "data:,x"],
    )
    def test_address_of_an_image_is_never_sent(self, address: str) -> None:
        part = {"type": "image_url", "image_url": {"url": address}}
        (message,) = project([{"role": "user", "content": [{"type": "text", "text": "look"}, part]}])
        assert message == {"role": "user", "content": "look\n\n[image_url]"}

    def test_only_the_newest_images_are_sent(self) -> None:
        def message(size: int) -> dict[str, Any]:
            return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"{DATA:x<{size}}"}}]}

        answer: dict[str, Any] = {"role": "assistant", "content": "ok"}
        third = MAX_SENT_CHARACTERS // 3
        history = [message(third), answer, message(third), answer, message(third), answer, message(third)]
        sent = [each["content"] for each in project(history) if each["role"] == "user"]
        assert sent[0] == NOT_SENT
        assert [each[0]["type"] for each in sent[1:]] == ["image_url"] * 3
