"""A plain model of lanes, their queues and leases: lists and dictionaries, no database."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_ATTEMPTS = 3
KNOWN_ENDS = ("done", "failed", "discarded", "deleted")


@dataclass
class Message:
    """A message from a platform."""

    name: str
    lane: str
    order: int
    """The id that the store gave it."""
    kind: str
    state: str = "accepted"
    attempts: int = 0


@dataclass
class Lane:
    """A lane: its messages that are not done, its turn, and the lease."""

    key: str
    token: int | None = None
    """The token of the present lease; None: no node has the lane."""
    node: str | None = None
    is_ended: bool = False
    """Whether the time of the lease is over."""
    turn: str | None = None
    has_progress: bool = False
    is_resting: bool = False


@dataclass
class LaneModel:
    """All lanes, messages and replies."""

    lanes: dict[str, Lane] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    replies: list[str] = field(default_factory=list)

    def waiting(self, key: str) -> list[Message]:
        """The messages that wait in a lane, in order."""
        return self._in_state(key, "accepted")

    def running(self, key: str) -> list[Message]:
        """The messages of the turn that runs in a lane."""
        return self._in_state(key, "running")

    def held(self, key: str) -> list[Message]:
        """The messages that are held in a lane, in order."""
        return self._in_state(key, "held")

    def _in_state(self, key: str, state: str) -> list[Message]:
        found = [each for each in self.messages.values() if each.lane == key and each.state == state]
        return sorted(found, key=lambda each: each.order)

    def ready(self) -> Lane | None:
        """The lane without a node whose oldest message waits longest."""
        free = [lane for lane in self.lanes.values() if lane.token is None and not lane.is_resting]
        queued = [(self.waiting(lane.key)[0].order, lane) for lane in free if self.waiting(lane.key)]
        return min(queued, key=lambda each: each[0])[1] if queued else None

    def ended(self) -> list[Lane]:
        """The lanes whose lease or rest is over, with something to do."""
        return [
            lane
            for lane in self.lanes.values()
            if lane.is_ended and (lane.is_resting or lane.token is not None) and self.has_work(lane)
        ]

    def has_work(self, lane: Lane) -> bool:
        """Whether a lane has messages that wait or would be recovered."""
        return bool(self.waiting(lane.key) or self.running(lane.key))

    def recover(self, lane: Lane) -> list[str]:
        """Let the messages of a lost turn wait again; return those that died."""
        dead = []
        for each in self.running(lane.key):
            if not lane.has_progress and each.attempts >= MAX_ATTEMPTS:
                each.state = "dead"
                dead.append(each.name)
            else:
                each.state = "accepted"
                each.attempts -= lane.has_progress
        lane.turn, lane.has_progress = None, False
        return dead

    def lease(self, lane: Lane, token: int, node: str) -> None:
        """Give a lane to a node."""
        lane.token, lane.node, lane.is_ended, lane.is_resting = token, node, False, False

    def free(self, lane: Lane, *, is_resting: bool = False) -> None:
        """Take a lane from its node."""
        lane.token = lane.node = lane.turn = None
        lane.has_progress = False
        lane.is_resting = is_resting and bool(self.waiting(lane.key))
        lane.is_ended = False

    def start(self, lane: Lane, turn: str, names: list[str]) -> None:
        """Start a turn, or add messages to the one that runs."""
        for name in names:
            self.messages[name].state = "running"
            self.messages[name].attempts += 1
        lane.turn = turn
