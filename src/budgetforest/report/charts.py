"""The charts of the report as Vega-Lite, by altair. Colours are names of the page's style sheet.

Charts refer to data by name and follow a parameter ``at``, the forest of the path in view; the page supplies
both. A chart in SVG takes its colours from the page, so it turns dark, or prints, as the page does.
"""

from __future__ import annotations

from typing import Any

import altair as alt

INK, SOFT, LINE, ACCENT, TINT = (f"var(--{name})" for name in ("ink", "soft", "line", "accent", "tint"))
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def charts(chosen: int) -> dict[str, dict[str, Any]]:
    """Every chart by the name of its place on the page."""
    at = alt.param(name="at", value=chosen)
    drawn = {
        "curve": _curve(at, chosen),
        "exit-cost": _histogram(at, "cost", "paid", alt.Axis(tickCount=4)),
        "exit-features": _histogram(at, "features", "features acquired", alt.Axis(tickCount=4, format="d")),
        "exit-trees": _histogram(at, "trees", "trees that had spoken", alt.Axis(tickCount=4, format="%")),
        "calibration": _calibration(at),
        "flow": _flow(at),
    }
    return {name: _styled(chart).to_dict() for name, chart in drawn.items()}


def _styled(chart: Any) -> Any:
    return (
        chart.properties(width="container", background="transparent")
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


def _curve(at: Any, chosen: int) -> Any:
    """Cost against error along the path, with the forest in view and what it is compared with."""
    cost = alt.X("cost:Q", title="mean cost of a row", scale=alt.Scale(zero=True, nice=True))
    error = alt.Y("error:Q", title="error", axis=alt.Axis(format=".0%", tickCount=6), scale=alt.Scale(zero=True))
    tips = [
        alt.Tooltip("budget:N", title="budget"),
        alt.Tooltip("cost:Q", title="mean cost", format=".4~g"),
        alt.Tooltip("error:Q", title="error", format=".1%"),
        alt.Tooltip("trees:Q", title="trees"),
    ]
    points = alt.Chart(alt.NamedData("points"))
    band = points.mark_area(color=ACCENT, opacity=0.14).encode(cost, alt.Y("low:Q"), alt.Y2("high"))
    line = points.mark_line(color=ACCENT, strokeWidth=2).encode(cost, error, order="at:O")
    dots = points.mark_circle(color=ACCENT, size=18, opacity=1).encode(cost, error, tooltip=tips)
    full = points.mark_line(color=SOFT, strokeDash=[5, 4], strokeWidth=1.5).encode(
        alt.X("full_cost:Q"), alt.Y("full_error:Q"), order="at:O"
    )
    common = alt.Chart(alt.NamedData("common")).mark_rule(color=SOFT, strokeDash=[1, 4], strokeCap="round")
    peers = alt.Chart(alt.NamedData("peers")).mark_point(
        shape="diamond", filled=True, size=110, color=INK, opacity=1
    )
    budget = (
        points.mark_rule(color=INK, opacity=0.55, strokeWidth=1)
        .encode(cost)
        .transform_filter(f"datum.at == {chosen}")
    )
    now = (
        points.mark_circle(size=150, opacity=1, color=ACCENT, stroke="var(--paper)", strokeWidth=2)
        .encode(cost, error)
        .transform_filter("datum.at == at")
    )
    return alt.layer(
        band, full, common.encode(error), budget, line, dots, peers.encode(cost, error), now
    ).properties(height=340).add_params(at)


def _histogram(at: Any, of: str, title: str, axis: Any) -> Any:
    """The distribution of one figure at the exit of rows."""
    bars = alt.Chart(alt.NamedData("exits")).transform_filter(f"datum.of == '{of}'")
    ends = alt.X("low:Q", title=title, axis=axis, scale=alt.Scale(zero=True))
    # all forests together set the axes, so that they stand still while the slider moves
    frame = bars.mark_bar(opacity=0).encode(ends, alt.X2("high"), alt.Y("share:Q"))
    here = (
        bars.transform_filter("datum.at == at")
        .mark_bar(color=ACCENT, binSpacing=1, cornerRadiusEnd=1.5)
        .encode(
            ends,
            alt.X2("high"),
            alt.Y("share:Q", title="rows", axis=alt.Axis(format="%", tickCount=4), stack=None),
            tooltip=[
                alt.Tooltip("low:Q", title="from"),
                alt.Tooltip("high:Q", title="to"),
                alt.Tooltip("share:Q", title="rows", format=".1%"),
            ],
        )
    )
    return alt.layer(frame, here).properties(height=150).add_params(at)


def _calibration(at: Any) -> Any:
    """Belief against truth, beside the diagonal on which both are equal."""
    whole = alt.Scale(domain=[0, 1])
    share = {"format": "%", "tickCount": 5}
    diagonal = (
        alt.Chart(alt.InlineData([{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
        .mark_line(color=SOFT, strokeDash=[5, 4], strokeWidth=1)
        .encode(alt.X("x:Q", scale=whole), alt.Y("y:Q", scale=whole))
    )
    tenths = (
        alt.Chart(alt.NamedData("calibration"))
        .transform_filter("datum.at == at")
        .encode(
            alt.X("belief:Q", title="belief in the leading label", axis=alt.Axis(**share), scale=whole),
            alt.Y("right:Q", title="how often it is right", axis=alt.Axis(**share), scale=whole),
        )
    )
    line = tenths.mark_line(color=ACCENT, strokeWidth=1.5, opacity=0.6)
    dots = tenths.mark_circle(color=ACCENT, opacity=1).encode(
        size=alt.Size("rows:Q", legend=None, scale=alt.Scale(range=[20, 320], zero=True)),
        tooltip=[
            alt.Tooltip("belief:Q", title="mean belief", format=".0%"),
            alt.Tooltip("right:Q", title="right", format=".1%"),
            alt.Tooltip("rows:Q", title="rows"),
        ],
    )
    return alt.layer(diagonal, line, dots).properties(height=300).add_params(at)


def _flow(at: Any) -> Any:
    """Blocks of rows with the same course, a column for every feature asked."""
    blocks = (
        alt.Chart(alt.NamedData("flow"))
        .transform_filter("datum.at == at")
        .transform_calculate(share="datum.bottom - datum.top", left="datum.step - 1", right="datum.step - 0.03")
    )
    across = alt.X("left:Q", axis=None, scale=alt.Scale(domain=[0, 5], nice=False))
    down = alt.Y("top:Q", axis=None, scale=alt.Scale(domain=[0, 1], reverse=True))
    shape = blocks.mark_rect(stroke="var(--paper)", strokeWidth=1.5, cornerRadius=3).encode(
        across,
        alt.X2("right"),
        down,
        alt.Y2("bottom"),
        fill=alt.Fill(
            "kind:N",
            scale=alt.Scale(domain=["asked", "rare", "decided"], range=[ACCENT, ACCENT, LINE]),
            legend=None,
        ),
        fillOpacity=alt.FillOpacity(
            "kind:N", scale=alt.Scale(domain=["asked", "rare", "decided"], range=[0.24, 0.1, 0.5]), legend=None
        ),
        tooltip=[
            alt.Tooltip("name:N", title="next"),
            alt.Tooltip("step:Q", title="step"),
            alt.Tooltip("share:Q", title="rows", format=".1%"),
        ],
    )
    words = (
        blocks.transform_filter("datum.share > 0.04")
        .transform_calculate(middle="(datum.top + datum.bottom) / 2")
        .encode(across, alt.Y("middle:Q"))
    )
    here = {"align": "left", "dx": 8, "limit": {"expr": "width / 5 - 18"}}
    name = words.mark_text(baseline="bottom", dy=1, fontSize=12, color=INK, **here).encode(text="name:N")
    share = words.mark_text(baseline="top", dy=2, fontSize=11, color=SOFT, **here).encode(
        text=alt.Text("share:Q", format=".0%")
    )
    return alt.layer(shape, name, share).properties(height=420).add_params(at)
