"""Writers that are killed at random moments."""

from __future__ import annotations

from tests.torture.fault import Fault, Trial
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor, checkpoint_and_index_often

WRITERS = 3
KILLS = 10
LONGEST_S = 0.25


def kill_writers(trial: Trial) -> Outcome:
    """Kill the writers one after the other while the others continue, and all of them at the end."""
    with Supervisor(trial.store, trial.random) as supervisor:
        supervisor.start_long_reader()
        for _ in range(WRITERS):
            supervisor.start_writer()
        for _ in range(KILLS - WRITERS):
            supervisor.listen(trial.random.uniform(0, LONGEST_S))
            victim = trial.random.choice(supervisor.writers)
            supervisor.kill(victim)
            prepare = trial.random.choice((lambda: None, checkpoint_and_index_often))
            supervisor.start_writer(threads=trial.random.randint(1, 3), after=victim, prepare=prepare)
        supervisor.listen(trial.random.uniform(0, LONGEST_S))
        supervisor.kill_all_writers()
        return supervisor.judge(KILLS)


FAULTS = (Fault("kill-writers", "one of three writing processes killed, at any moment", kill_writers, 50),)
