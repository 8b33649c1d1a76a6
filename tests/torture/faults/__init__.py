"""Every fault, by its name."""

from __future__ import annotations

from tests.torture.fault import Fault
from tests.torture.faults import (
    backups,
    checkpoints,
    clocks,
    damage,
    disks,
    files,
    forks,
    kills,
    locks,
    opens,
    power,
    programs,
    upgrades,
)

_MODULES = (kills, checkpoints, upgrades, backups, files, power, disks, locks, programs, clocks, forks, opens, damage)

FAULTS: dict[str, Fault] = {fault.name: fault for module in _MODULES for fault in module.FAULTS}
"""In the order of the table."""
