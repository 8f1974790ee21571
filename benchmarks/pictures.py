"""Pictures of several panels, one per data set."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib.pyplot as plt


def draw_panels(
    sets: Sequence[dict],
    panel: Callable[[plt.Axes, dict], None],
    path: Path,
    *,
    across: int = 3,
    size: tuple[float, float] = (4.2, 3.2),
) -> None:
    """So many panels in a row, with one legend for all, that of the first."""
    across = min(across, len(sets))
    down = -(-len(sets) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(size[0] * across, size[1] * down), layout="constrained", squeeze=False
    )
    for ax in axes.flat[len(sets) :]:
        ax.set_visible(False)
    for ax, found in zip(axes.flat, sets, strict=False):
        panel(ax, found)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), frameon=False, loc="outside lower center", ncols=4)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
