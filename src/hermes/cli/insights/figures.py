"""Formatting of numbers."""

from __future__ import annotations

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_CENT = 0.01


def number(count: int) -> str:
    """Format `1,234,567`."""
    return f"{count:,}"


def money(usd: float) -> str:
    """Format `$1,234.50`; an amount below a cent keeps its first two digits."""
    sign, amount = ("-", -usd) if usd < 0 else ("", usd)
    return f"{sign}${amount:,.2f}" if amount >= _CENT or not amount else f"{sign}${amount:.2g}"


def percent(share: float) -> str:
    """Format `12.5%`."""
    return f"{100 * share:.1f}%"


def duration(seconds: float) -> str:
    """Format `45s`, `12m`, `2h 5m`, `3h` or `1.5d`."""
    if seconds < _MINUTE:
        return f"{int(seconds)}s"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)}m"
    if seconds < _DAY:
        hours, rest = divmod(int(seconds), _HOUR)
        return f"{hours}h {rest // _MINUTE}m" if rest >= _MINUTE else f"{hours}h"
    return f"{seconds / _DAY:,.1f}d"
