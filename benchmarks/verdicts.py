"""Who wins: differences with their intervals become wins, ties and losses."""

from collections.abc import Sequence


def verdict(difference: Sequence[float]) -> str:
    """Win, tie or loss of ours, by how much more the other errs; a tie where the interval holds 0."""
    _, low, high = difference
    return "win" if low > 0 else "loss" if high < 0 else "tie"


def tally(verdicts: Sequence[str]) -> str:
    """Wins / ties / losses."""
    return " / ".join(str(verdicts.count(kind)) for kind in ("win", "tie", "loss"))
