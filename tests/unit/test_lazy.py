"""Values that are computed on first use."""

from __future__ import annotations

from threading import Event, Thread

from hermes.lazy import lazy


class Counted:
    """An object whose value tells how often it was computed."""

    times = 0

    @lazy
    def value(self) -> int:
        """The number of the computation."""
        self.times += 1
        return self.times


class Waiting:
    """An object whose value is there after an event."""

    def __init__(self, event: Event) -> None:
        self.event = event

    @lazy
    def is_there(self) -> bool:
        """Whether the event happened."""
        return self.event.wait(30)


def test_value_is_computed_once_for_each_object() -> None:
    first, second = Counted(), Counted()
    assert (first.value, first.value, second.value, first.times) == (1, 1, 1, 1)
    assert Counted.value.__doc__ == "The number of the computation."


def test_an_object_does_not_wait_for_another_one() -> None:
    happened = Event()
    slow = Waiting(happened)
    thread = Thread(target=lambda: slow.is_there)
    thread.start()
    done = Event()
    done.set()
    results: list[bool] = []
    other = Thread(target=lambda: results.append(Waiting(done).is_there))
    other.start()
    other.join(10)
    is_over = not other.is_alive()
    happened.set()
    thread.join()
    other.join()
    assert is_over
    assert results == [True]
    assert slow.is_there
