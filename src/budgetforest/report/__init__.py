"""The report on a fitted model: one HTML page, complete in itself, that opens without a network.

``facts`` measures, ``charts`` draws, ``page`` binds both into the page; ``page.html``, ``page.css`` and
``page.js`` are the page itself.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budgetforest.runtime.arrays import Anything
from budgetforest.runtime.atomic import replacing
from budgetforest.runtime.errors import MissingExtra, UnusualData, warn

if TYPE_CHECKING:
    from budgetforest.report.facts import Facts

TITLE = "What the forest asks, and what it pays"


@dataclass(frozen=True)
class Report:
    """What ``report`` returns; a notebook shows it as it is."""

    facts: Facts
    """Every figure of the page."""
    page: str
    """The page, as HTML."""

    def save(self, path: Anything) -> Path:
        """Write the page to a file and return its path."""
        target = Path(path)
        with replacing(target) as beside:
            beside.write_text(self.page, encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither it nor the notebook disturbs the other."""
        inside = html.escape(self.page)
        style = "width:100%;height:80vh;border:0"
        return f'<iframe sandbox="allow-scripts" title="Report" style="{style}" srcdoc="{inside}"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.facts.title!r}, {len(self.page) / 1e6:.1f} MB)"


def report(
    model: Any,
    X: Anything,
    y: Anything,
    *,
    title: str | None = None,
    baseline: Any = None,
    files: Mapping[str, str] | None = None,
    currency: str = "",
    row_name: str = "row",
) -> Report:
    """Measure a fitted model on rows that training has not seen, and write a page about it.

    Beyond ``sample.MOST_ROWS`` rows a random part is measured, and the page says so. ``baseline`` is any
    fitted classifier, drawn into the curve: trees and forests of scikit-learn are charged for what a row
    meets until its label is certain, other classifiers for every feature. ``files`` are
    listed before the parameters: where the model and the rows come from. Warns if training has seen the rows.
    """
    from budgetforest.report.facts import gather

    try:
        from budgetforest.report.page import render
    except ImportError:
        raise MissingExtra('reports need altair and vl-convert: pip install "budgetforest[report]"') from None
    facts = gather(
        model,
        X,
        y,
        title=title or TITLE,
        baseline=baseline,
        files=files,
        currency=currency,
        row_name=row_name,
    )
    if facts.flattered:
        warn(
            f"training has seen {facts.seen:.0%} of these rows, so errors seem smaller than they are; "
            "report on other rows",
            UnusualData,
        )
    return Report(facts, render(facts))
