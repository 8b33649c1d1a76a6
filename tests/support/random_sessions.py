"""Random sessions of every kind, used in every way."""

from __future__ import annotations

from random import Random

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock

SOURCES = ("cli", "telegram", "discord", "subagent")
MODELS = ("openai/gpt-5", "gpt-5", "通义千问", "claude \U0001f600", None)
TOOLS = ("terminal", "read_file", "skill_view")


class RandomUse:
    """Fills a store while time passes."""

    def __init__(self, store: SessionDBProvider, clock: FakeClock, seed: int) -> None:
        self.store, self.clock, self.rng = store, clock, Random(seed)
        self.open: list[str] = []
        self._count = 0

    def run(self, steps: int, longest_pause_s: float) -> None:
        """Do random actions, with pauses."""
        actions = [self.begin, self.talk, self.talk, self.talk, self.spend, self.spend, self.change_session, self.undo]
        self.begin()
        for _ in range(steps):
            self.clock.advance(self.rng.random() ** 3 * longest_pause_s + 1)
            self.rng.choice(actions)()

    def begin(self) -> None:
        """Create a session, perhaps of an agent, perhaps imported."""
        session_id = self._name()
        chance = self.rng.random()
        model = self.rng.choice(MODELS)
        if chance < 0.1:
            self.store.import_session(
                {
                    "id": session_id,
                    "source": "cli",
                    "started_at": self.clock.now - 90_000,
                    "input_tokens": 50,
                    "estimated_cost_usd": self.rng.choice([None, 0.25]),
                    "cost_status": self.rng.choice([None, "included"]),
                    "messages": [{"role": "user", "content": "long ago", "timestamp": self.clock.now - 80_000}],
                }
            )
        elif chance < 0.3 and self.open:
            parent = self.rng.choice(self.open)
            self.store.create_session(session_id, "subagent", parent_session_id=parent, child_kind="delegate")
        else:
            source = self.rng.choice(SOURCES)
            user = None if source == "cli" else f"{self.rng.randrange(2)}"
            self.store.create_session(session_id, source, model=model, user_id=user)
        self.open.append(session_id)

    def talk(self) -> None:
        """Append a question, perhaps tool calls, and an answer."""
        session_id = self.rng.choice(self.open)
        self.store.append_message(session_id, "user", "a question")
        if self.rng.random() < 0.5:
            tool = self.rng.choice(TOOLS)
            self.clock.advance(1)
            call = {"id": "1", "function": {"name": tool, "arguments": '{"name": "報告"}'}}
            self.store.append_message(session_id, "assistant", None, tool_calls=[call])
            self.store.append_message(session_id, "tool", "done", tool_name=tool, tool_call_id="1")
        self.clock.advance(2)
        self.store.append_message(session_id, "assistant", "an answer")

    def spend(self) -> None:
        """Record a model call, with or without a known price."""
        whole = self.rng.random() < 0.1
        cost = self.rng.choice([None, 0.0, 0.5, 1.25])
        actual = self.rng.random() < 0.3
        self.store.update_token_counts(
            self.rng.choice(self.open),
            input_tokens=self.rng.randrange(1, 500),
            output_tokens=self.rng.randrange(1, 500),
            cache_read_tokens=self.rng.randrange(500),
            cache_write_tokens=self.rng.randrange(500),
            reasoning_tokens=self.rng.randrange(50),
            api_call_count=1,
            model=self.rng.choice(MODELS),
            estimated_cost_usd=None if actual else cost,
            actual_cost_usd=cost if actual else None,
            absolute=whole,
        )

    def change_session(self) -> None:
        """Compress, branch, archive, end or delete a session."""
        session_id = self.rng.choice(self.open)
        chance = self.rng.random()
        messages = self.store.get_messages(session_id)
        if chance < 0.4 and len(messages) > 2 and self.store.get_compression_tip(session_id) == session_id:
            child = self._name()
            self.store.compress_session(session_id, child, "in short", tail_from=messages[-2]["id"])
            self.open.append(child)
        elif chance < 0.7 and messages:
            child = self._name()
            self.store.branch_session(session_id, child)
            self.open.append(child)
        elif chance < 0.9:
            self.store.set_session_archived(session_id)
        elif len(self.open) > 5:
            self.store.delete_session(session_id)
            self.open = [each for each in self.open if self.store.get_session(each)]

    def undo(self) -> None:
        """Undo the last question."""
        session_id = self.rng.choice(self.open)
        asked = [each["id"] for each in self.store.get_messages(session_id) if each["role"] == "user"]
        if asked:
            self.store.rewind_to_message(session_id, asked[-1])

    def _name(self) -> str:
        self._count += 1
        return f"s{self._count:04}"
