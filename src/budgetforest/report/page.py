"""The page: template, style, scripts and figures bound into one file that needs nothing else.

Whatever comes from data reaches the page as JSON in an inert element, and from there as text, never as
markup. A policy in the page allows exactly its own two scripts and no request, should anything slip in.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import html
import json
import math
from importlib import resources
from string import Template
from typing import Any

import vl_convert

from budgetforest.report.charts import charts, edge_of
from budgetforest.report.facts import Facts


def render(facts: Facts) -> str:
    """The page as HTML."""
    vega, own = _vega(), _part("page.js")
    return Template(_part("page.html")).substitute(
        title=html.escape(facts.title),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src {_digest(vega)} {_digest(own)}",
        style=_part("page.css"),
        facts=_inert(dataclasses.asdict(facts)),
        charts=_inert(charts(facts.chosen, _edge(facts), facts.peer, facts.row_name)),
        vega=vega,
        script=own,
    )


def _edge(facts: Facts) -> float:
    """Where the axis of costs ends."""
    asked = [point.full_cost for point in facts.points]
    asked += [facts.peer.cost] if facts.peer else []
    # figures of the page have six digits, and none that is rounded up stands beyond
    return (1 + 1e-5) * edge_of([point.cost for point in facts.points], asked)


def _part(name: str) -> str:
    return resources.files("budgetforest.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script; browsers read a carriage return as a new line."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("\r", "")


def _digest(script: str) -> str:
    """The name by which a policy allows a script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _inert(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(_rounded(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _rounded(value: Any) -> Any:
    """Figures to six digits: more are not worth their place."""
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
