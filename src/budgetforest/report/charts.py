"""The charts of the report as Vega-Lite, by altair. Colours are names of the page's style sheet.

Charts refer to data by name and follow a parameter ``at``, the forest of the path in view; the page supplies
both. A chart in SVG takes its colours from the page, so it turns dark, or prints, as the page does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from budgetforest.report.facts import Peer
from budgetforest.report.flow import STEPS

INK, SOFT, LINE, ACCENT, PAPER = (f"var(--{name})" for name in ("ink", "soft", "line", "accent", "paper"))
WORDS = ["first", "second", "third", "fourth", "fifth"]
NARROW = 500
"""Below this width, in pixels, blocks have no room for figures."""
REACH = 1.4
"""The axis of costs follows what costs up to so many times the dearest forest of the path; dearer points
stand at its edge, with their cost beside them, so that they do not squeeze the path."""
ROOM = 1.15
"""Where there are such points the path ends a little before the edge."""
SAID = {
    "curve": "Error against mean cost of a {row}, for every forest of the path",
    "exit-cost": "Share of rows by what they had paid",
    "exit-features": "Share of rows by how many features they had acquired",
    "exit-trees": "Share of rows by the share of trees that had spoken",
    "calibration": "How often the leading label is right against the belief in it",
    "flow": "Which feature is asked first, and what then, by share of rows",
}
"""What each chart shows, for those who do not see it."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def charts(chosen: int, edge: float, peer: Peer | None, row_name: str) -> dict[str, dict[str, Any]]:
    """Every chart by the name of its place on the page; ``edge`` is where the axis of costs ends."""
    at = alt.param(name="at", value=chosen)
    drawn = {
        "curve": _curve(at, chosen, edge, peer, row_name),
        "exit-cost": _histogram(at, "cost", "paid", ".3~r"),
        "exit-features": _histogram(at, "features", "features acquired", ".3~r", middle=0.5),
        "exit-trees": _histogram(at, "trees", "trees that had spoken", "~%", [0, 1]),
        "calibration": _calibration(at),
        "flow": _flow(at),
    }
    return {name: _styled(chart, SAID[name].format(row=row_name)).to_dict() for name, chart in drawn.items()}


def edge_of(path: Sequence[float], others: Sequence[float]) -> float:
    """Where the axis of costs ends, by those of the path and of what it is compared with.

    >>> edge_of([0, 2, 10], [12, 14]), edge_of([0, 2, 10], [12, 90]), edge_of([0], [90])
    (14, 12, 90)
    """
    dearest = max(path)
    within = [cost for cost in others if cost <= REACH * dearest or not dearest]
    return max(dearest if len(within) == len(others) else ROOM * dearest, *within, 0) or 1.0


def _styled(chart: Any, said: str) -> Any:
    return (
        chart.properties(
            description=said,
            width="container",
            background="transparent",
            padding={"left": 0, "right": 8, "top": 4, "bottom": 4},
        )
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=SOFT,
            titleColor=SOFT,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            gridColor=LINE,
            domain=False,
            ticks=False,
            labelPadding=6,
            titlePadding=10,
        )
    )


def _upright(title: str, **axis: Any) -> Any:
    """A vertical axis whose title stands above it, where it can be read."""
    return alt.Axis(title=title, titleAngle=0, titleAlign="right", titleX=-6, titleY=-14, **axis)


def _curve(at: Any, chosen: int, edge: float, peer: Peer | None, row_name: str) -> Any:
    """Cost against error along the path, with the forest in view and what it is compared with."""
    axis = {"title": f"mean cost of a {row_name}", "axis": alt.Axis(grid=False, tickCount=8)}
    axis["scale"] = alt.Scale(domain=[0, edge], nice=False)
    cost, shown = alt.X("cost:Q", **axis), alt.X("shown:Q", **axis)
    error = alt.Y("error:Q", axis=_upright("error", format=".0%", tickCount=6))
    tips = [
        alt.Tooltip("budget:N", title="budget"),
        alt.Tooltip("cost:Q", title="mean cost", format=".4~g"),
        alt.Tooltip("error:Q", title="error", format=".1%"),
        alt.Tooltip("what:N", title="forest"),
    ]
    points = alt.Chart(alt.NamedData("points"))
    band = points.mark_area(color=ACCENT, opacity=0.14).encode(cost, alt.Y("low:Q"), alt.Y2("high"))
    line = points.mark_line(color=ACCENT, strokeWidth=2).encode(cost, error)
    dots = points.mark_circle(color=ACCENT, size=18, opacity=1).encode(cost, error, tooltip=tips)
    here = points.transform_filter("datum.at == at")
    asked = here.transform_calculate(shown=f"min(datum.full_cost, {edge})", **_beyond(edge, peer))
    way = asked.mark_rule(color=SOFT, strokeDash=[5, 4], strokeWidth=1.5).encode(
        cost, error, alt.X2("shown"), alt.Y2("full_error")
    )
    full = asked.mark_circle(size=90, opacity=1, fill=PAPER, stroke=SOFT, strokeWidth=1.5).encode(
        shown, alt.Y("full_error:Q")
    )
    lines = 1 + (peer is not None and peer.cost > edge)
    words = asked.mark_text(
        align="right",
        baseline="bottom",
        dy=4 - 15 * lines,
        fontSize=12,
        lineBreak="\n",
        lineHeight=15,
        color=SOFT,
    )
    common = alt.Chart(alt.NamedData("common")).mark_rule(color=SOFT, strokeDash=[1, 4], strokeCap="round")
    peers = (
        alt.Chart(alt.NamedData("peers"))
        .transform_calculate(shown=f"min(datum.cost, {edge})")
        .mark_point(shape="diamond", filled=True, size=110, color=INK, opacity=1)
    )
    others = [peers.encode(shown, error)] if peer else []
    budget = (
        points.mark_rule(color=INK, opacity=0.55, strokeWidth=1)
        .encode(cost)
        .transform_filter(f"datum.at == {chosen}")
    )
    now = here.mark_circle(size=150, opacity=1, fill=ACCENT, stroke=PAPER, strokeWidth=2).encode(cost, error)
    costs = words.encode(alt.X("edge:Q", **axis), alt.Y("top:Q"), text="words:N")
    layers = [band, common.encode(error), budget, way, line, dots, *others, full, costs, now]
    return alt.layer(*layers).properties(height=340).add_params(at)


def _beyond(edge: float, peer: Peer | None) -> dict[str, str]:
    """What is written of points beyond the edge, a line each, above the upper one."""
    full = "datum.full_cost > " + str(edge)
    lines, top = [f"({full} ? '○ costs ' + format(datum.full_cost, ',.3~r') + ' →' : '')"], 0.0
    if peer and peer.cost > edge:
        lines, top = [*lines, f"'◆ costs ' + format({peer.cost}, ',.3~r') + ' →'"], peer.error
    return {
        "edge": str(edge),
        "top": f"max({full} ? datum.full_error : 0, {top})",
        "words": " + '\\n' + ".join(lines),
    }


def _histogram(
    at: Any, of: str, title: str, form: str, domain: Any = alt.Undefined, middle: float = 0
) -> Any:
    """The distribution of one figure at the exit of rows; whole numbers are a ``middle`` within their bar."""
    bars = alt.Chart(alt.NamedData("exits")).transform_filter(f"datum.of == '{of}'")
    bars = bars.transform_calculate(least=f"datum.low + {middle}", most=f"datum.high - {middle}")
    axis = alt.Axis(grid=False, tickCount=4, format=form, labelFlush=False)
    ends = alt.X("low:Q", bin="binned", title=title, axis=axis, scale=alt.Scale(domain=domain, zero=True))
    # all forests together set the axis, so that it stands still while the slider moves
    frame = bars.mark_rect(opacity=0).encode(ends, alt.X2("high"))
    here = (
        bars.transform_filter("datum.at == at")
        .mark_bar(color=ACCENT, binSpacing=1, cornerRadiusEnd=1.5)
        .encode(
            ends,
            alt.X2("high"),
            alt.Y("share:Q", axis=_upright("rows", format="~%", tickCount=4), stack=None),
            tooltip=[
                alt.Tooltip("least:Q", title="from"),
                alt.Tooltip("most:Q", title="to"),
                alt.Tooltip("share:Q", title="rows", format=".1%"),
            ],
        )
    )
    return alt.layer(frame, here).properties(height=150).add_params(at)


def _calibration(at: Any) -> Any:
    """Belief against truth, beside the diagonal on which both are equal."""
    whole = alt.Scale(domain=[0, 1])
    share = {"format": "%", "tickCount": 5, "labelFlush": False}
    diagonal = (
        alt.Chart(alt.InlineData([{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
        .mark_line(color=SOFT, strokeDash=[5, 4], strokeWidth=1)
        .encode(alt.X("x:Q", scale=whole), alt.Y("y:Q", scale=whole))
    )
    tenths = (
        alt.Chart(alt.NamedData("calibration"))
        .transform_filter("datum.at == at")
        .encode(
            alt.X(
                "belief:Q",
                title="belief in the leading label",
                axis=alt.Axis(grid=False, **share),
                scale=whole,
            ),
            alt.Y("right:Q", axis=_upright("right", **share), scale=whole),
        )
    )
    line = tenths.mark_line(color=ACCENT, strokeWidth=1.5, opacity=0.6)
    dots = tenths.mark_circle(color=ACCENT, opacity=1).encode(
        size=alt.Size("rows:Q", legend=None, scale=alt.Scale(range=[10, 120], zero=True)),
        tooltip=[
            alt.Tooltip("belief:Q", title="mean belief", format=".0%"),
            alt.Tooltip("right:Q", title="right", format=".1%"),
            alt.Tooltip("rows:Q", title="rows"),
        ],
    )
    return alt.layer(diagonal, line, dots).properties(height=300).add_params(at)


def _flow(at: Any) -> Any:
    """Blocks of rows with the same course, a column for every feature asked."""
    sides = {"left": "datum.step - 1", "right": "datum.step - 0.03"}
    blocks = (
        alt.Chart(alt.NamedData("flow"))
        .transform_filter("datum.at == at")
        .transform_calculate(share="datum.bottom - datum.top", **sides)
    )
    turns = alt.Axis(
        title=None,
        orient="top",
        grid=False,
        values=[*range(STEPS)],
        labelExpr=f"{WORDS}[datum.value]",
        labelAlign="left",
    )
    across = alt.X("left:Q", axis=turns, scale=alt.Scale(domain=[0, STEPS], nice=False))
    down = alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[0, 1], reverse=True))
    shape = blocks.mark_rect(stroke=PAPER, strokeWidth=1.5, cornerRadius=3).encode(
        across,
        alt.X2("right"),
        down,
        alt.Y2("bottom"),
        fill=alt.Fill(
            "kind:N",
            scale=alt.Scale(domain=["asked", "rare", "decided"], range=[ACCENT, ACCENT, SOFT]),
            legend=None,
        ),
        fillOpacity=alt.FillOpacity(
            "kind:O",
            scale=alt.Scale(domain=["asked", "rare", "decided"], range=[0.26, 0.12, 0.16]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip("name:N", title="next"),
            alt.Tooltip("step:Q", title="step"),
            alt.Tooltip("share:Q", title="rows", format=".1%"),
        ],
    )
    words = (
        blocks.transform_filter("datum.share > 0.035")
        .transform_calculate(
            middle="(datum.top + datum.bottom) / 2",
            words=f"datum.name + (width > {NARROW} ? '  ' + format(datum.bottom - datum.top, '.0%') : '')",
        )
        .mark_text(align="left", dx=8, fontSize=12, color=INK, limit={"expr": f"width / {STEPS} - 16"})
        .encode(across, alt.Y("middle:Q"), text="words:N")
    )
    frame = (
        alt.Chart(alt.NamedData("way"))
        .transform_calculate(**sides)
        .mark_rect(fill=None, stroke=INK, strokeWidth=1.5, cornerRadius=3, aria=False)
        .encode(across, alt.X2("right"), down, alt.Y2("bottom"))
    )
    return alt.layer(shape, frame, words).properties(height=420).add_params(at)
