"""The report in a real browser: it opens from disk without a network, moves, turns dark and prints."""

import re
import shutil
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from budgetforest import BudgetForestClassifier

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.skipif(CHROMIUM is None, reason="the report is tested in Chromium: apt-get install chromium"),
]

HOSTILE = "</script><img src=x onerror=window.hacked=1>"


@pytest.fixture(scope="module")
def report():
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(6, max_trees=8, random_state=0).fit(X[::2], y[::2])
    tree = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    return model.report(X[1::2], y[1::2], title="Wine & <prices>", baseline=tree)


@pytest.fixture(scope="module")
def far():
    """A forest far cheaper than what it is compared with."""
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(2, max_trees=20, random_state=0).fit(X[::2], y[::2])
    forest = RandomForestClassifier(50, random_state=0).fit(X[::2], y[::2])
    return model.report(X[1::2], y[1::2], baseline=forest)


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({HOSTILE: rng.choice([f"{HOSTILE}a", "b"], 80), "<b>": rng.random(80)})
    y = np.where((table[HOSTILE] == "b") & (table["<b>"] > 0.3), f"{HOSTILE}yes", "{{no}}${x}")
    groups = {HOSTILE: f"{HOSTILE}g", "<b>": f"{HOSTILE}g"}
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=3, groups=groups, random_state=0)
    return model.fit(table[::2], y[::2]).report(table[1::2], y[1::2], title=HOSTILE)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a report from disk, offline; a request or a word on the console fails the test."""
    contexts, troubles = [], []

    def opened(report, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: troubles.append(request.url))
        path = report.save(tmp_path / "report.html")
        page.goto(path.as_uri())
        page.wait_for_selector("[data-drawn]", timeout=20_000)
        assert troubles.pop(0) == path.as_uri()  # the page itself is the only thing that is loaded
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def texts(page, *ids):
    return [page.locator(f"#{name}").inner_text() for name in ids]


def test_opens_offline_with_every_chart_drawn(visit, report):
    page = visit(report)
    assert page.title() == "Wine & <prices>"
    charts = page.locator(".chart").count()
    assert page.locator(".chart svg").count() == charts == 6
    assert page.locator("#curve svg .mark-line path").count() >= 1
    assert texts(page, "peer-name") == ["DecisionTreeClassifier"]
    assert page.locator("#curve svg .mark-symbol path").count() == len(report.facts.points) + 3
    assert len(report.page) < 3_000_000


def test_the_slider_moves_every_figure_by_keyboard(visit, report):
    page = visit(report)
    figures = ("budget", "f-error", "f-cost", "f-trees", "lead", "features", "confusion", "story")
    slider = page.get_by_label("Budget", exact=True)
    page.keyboard.press("Tab")  # the theme, then the slider
    page.keyboard.press("Tab")
    assert slider.evaluate("element => element === document.activeElement")
    chosen, spoken = texts(page, *figures), slider.get_attribute("aria-valuetext")
    assert chosen[0] == "6"
    where = page.locator("#curve svg").inner_html()
    page.keyboard.press("Home")
    free = texts(page, *figures)
    common = report.facts.points[0]
    assert free[:4] == ["0", f"{100 * common.error:.0f}%", "0", "0"]
    assert all(now != before for now, before in zip(free, chosen, strict=True))
    assert slider.get_attribute("aria-valuetext") != spoken
    page.wait_for_function("before => document.querySelector('#curve svg').innerHTML !== before", arg=where)
    page.keyboard.press("ArrowRight")
    assert texts(page, "f-cost") != ["0"]
    page.get_by_role("button", name="Back to chosen").click()
    assert texts(page, *figures) == chosen


def test_stories_change_with_the_row(visit, report):
    page = visit(report)
    stories = report.facts.stories
    for place in (0, len(stories) - 1):
        page.get_by_label("Row", exact=True).select_option(str(place))
        told = stories[place].tellings[report.facts.chosen]
        assert page.locator("#story tr").count() == 1 + len(told.steps)
        assert stories[place].names[told.steps[0][0]] in page.locator("#story tr").nth(1).inner_text()
        assert f"for {told.spent:g}." in texts(page, "story-text")[0]


FRAMES = "#flow svg .mark-rect path[stroke='var(--ink)']"


def test_the_flow_frames_the_way_of_the_chosen_row(visit, report):
    page = visit(report)
    assert "the first five steps" in page.locator("section", has=page.locator("#flow")).inner_text()
    for place in (0, len(report.facts.stories) - 1):
        page.get_by_label("Row", exact=True).select_option(str(place))
        story = report.facts.stories[place]
        told = story.tellings[report.facts.chosen]
        page.wait_for_timeout(100)
        frames = page.locator(FRAMES)
        assert 1 <= frames.count() <= min(told.asked + 1, 5)
        blocks = page.locator("#flow svg .mark-rect path[aria-roledescription]:not([stroke='var(--ink)'])")
        tops = {(box["x"], box["y"]) for box in (block.bounding_box() for block in blocks.all())}
        assert all((box["x"], box["y"]) in tops for box in (one.bounding_box() for one in frames.all()))


def test_charts_say_what_they_show_and_trees_count_from_one(visit, report):
    page = visit(report)
    said = [chart.get_attribute("aria-label") for chart in page.locator(".chart").all()]
    assert len({*said} - {None, ""}) == 6
    assert page.locator("#trees tr td").first.text_content() == "1"


def boxes(page, selector):
    return [mark.bounding_box() for mark in page.locator(f"#curve svg {selector}").all()]


def test_what_is_far_dearer_stands_at_the_edge_with_its_cost(visit, far):
    facts = far.facts
    dearest = max(point.cost for point in facts.points)
    assert facts.peer.cost > 2 * dearest
    for width in (1280, 390):
        page = visit(far, viewport={"width": width, "height": 900})
        (grid, *_) = boxes(page, ".role-axis-grid line")
        (line,) = boxes(page, ".mark-line path")
        assert line["width"] > 0.7 * grid["width"]  # the path is not squeezed
        right = max(box["x"] + box["width"] / 2 for box in boxes(page, ".mark-symbol path"))
        assert right == pytest.approx(grid["x"] + grid["width"], abs=2)
        assert f"◆ costs {facts.peer.cost:.3g} →" in page.locator("#curve svg").text_content()
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes(page, "text"))


def test_what_is_not_far_is_shown_where_it_is(visit):
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(6, max_trees=8, answer="proba", random_state=0).fit(X[::2], y[::2])
    report = model.report(X[1::2], y[1::2])
    assert all(point.full_cost == point.cost for point in report.facts.points)
    assert "costs" not in visit(report).locator("#curve svg").text_content()


def luminance(colour):
    """Of a colour as browsers tell it, by the rules for accessible pages (WCAG 2)."""
    parts = [float(part) for part in re.findall(r"[\d.]+", colour)[:3]]
    parts = parts if colour.startswith("color(srgb") else [part / 255 for part in parts]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_of_the_confusion_can_be_read(visit, report, scheme):
    page = visit(report, color_scheme=scheme)
    colours = """cells => cells.map(cell => {
        const style = getComputedStyle(cell); return [style.color, style.backgroundColor]; })"""
    seen = set()
    for place in range(len(report.facts.points)):
        page.locator("#slider").fill(str(place))
        for pair in page.locator("#confusion td:not(.none)").evaluate_all(colours):
            dark, light = sorted(map(luminance, pair))
            assert (light + 0.05) / (dark + 0.05) > 4.5, pair
            seen.add(pair[1])
    assert len(seen) > 5  # shades from few rows to all


def brightness(page, selector, what="backgroundColor"):
    colour = page.locator(selector).first.evaluate(f"element => getComputedStyle(element).{what}")
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3]))


def test_light_and_dark_by_system_and_by_hand(visit, report):
    page = visit(report, color_scheme="dark")
    assert brightness(page, "body") < 150 < brightness(page, "body", "color")
    label = "#curve svg .role-axis-label text"
    dark = brightness(page, label, "fill")
    page.get_by_role("button", name="Light").click()
    assert brightness(page, "body") > 700
    assert brightness(page, label, "fill") < dark  # charts take their colours from the page
    page.get_by_role("button", name="Dark").click()
    assert brightness(page, "body") < 150
    assert brightness(visit(report, color_scheme="light"), "body") > 700


def test_prints_light_without_controls(visit, report):
    page = visit(report, color_scheme="dark")
    assert page.locator("#slider").is_visible()
    page.emulate_media(media="print")
    assert brightness(page, "body", "color") < 150
    assert not page.locator("#slider").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator("#curve svg").is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_nothing_is_wider_than_a_phone(visit, report):
    page = visit(report, viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for chart in page.locator(".chart svg").all():
        assert chart.bounding_box()["width"] <= 390


@pytest.fixture(scope="module")
def letters():
    """A report on more classes than the matrix shows."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 26, 800)
    X = np.c_[truth + rng.normal(0, 1, 800), truth % 5 + rng.normal(0, 1, 800)]
    names = np.array([f"letter {chr(65 + at)}" for at in range(26)])[truth]
    model = BudgetForestClassifier(method="paper", alpha=2, max_trees=3, random_state=0)
    return model.fit(X[:500], names[:500]).report(X[500:], names[500:])


@pytest.mark.parametrize("width", [1280, 794])  # a screen, a sheet of paper
def test_a_matrix_of_many_classes_is_whole(visit, letters, width):
    page = visit(letters, viewport={"width": width, "height": 900})
    room, needed = page.eval_on_selector(
        "#confusion", "table => [table.parentElement.clientWidth, table.parentElement.scrollWidth]"
    )
    assert needed <= room


@pytest.mark.parametrize("width", [1280, 390])
def test_heads_of_many_classes_do_not_overlap(visit, letters, width):
    page = visit(letters, viewport={"width": width, "height": 900})
    sides = page.eval_on_selector_all(
        "#confusion thead th:not(:first-child)",
        "heads => heads.map((head) => {"
        "  const range = document.createRange(); range.selectNodeContents(head);"
        "  const box = range.getBoundingClientRect(); return [box.left, box.right]; })",
    )
    assert len(sides) == 12
    assert all(right <= left for (_, right), (left, _) in pairwise(sides))


def test_every_class_is_listed_below_the_matrix(visit, letters):
    page = visit(letters)
    rows = [line.split("\t") for line in page.locator("#by-class").inner_text().splitlines()]
    told = letters.facts
    assert [row[0] for row in rows] == told.classes
    assert [int(row[1]) for row in rows] == told.class_rows
    recall = [share for share, _ in told.by_class[told.chosen]]
    assert [row[2] == "\u2013" for row in rows] == [share is None for share in recall]
    written = [float(row[2].rstrip("%")) / 100 for row in rows if row[2] != "\u2013"]
    assert written == pytest.approx([share for share in recall if share is not None], abs=0.0051)
    heads = page.eval_on_selector_all(
        "table:has(#by-class) th", "heads => heads.map((head) => getComputedStyle(head).writingMode)"
    )
    assert heads == ["horizontal-tb"] * 4


def test_the_axis_of_costs_says_what_a_row_is(visit):
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(method="paper", alpha=0, max_trees=2, random_state=0).fit(X[::2], y[::2])
    page = visit(model.report(X[1::2], y[1::2], row_name="patient"))
    chart = page.locator("#curve")
    assert "mean cost of a patient" in chart.locator("svg").text_content()
    assert chart.get_attribute("aria-label").startswith("Error against mean cost of a patient, for every")
    assert page.locator("#lacks").is_hidden()


def test_what_rows_lacked_is_said_at_the_head(visit):
    X, y = load_wine(return_X_y=True)
    model = BudgetForestClassifier(6, max_trees=8, random_state=0).fit(X[::2], y[::2])
    report = model.report(np.where(X[1::2] > 20, np.nan, X[1::2]), y[1::2])
    page = visit(report)
    assert "rows lacked a value that they asked for" in report.facts.lacks[report.facts.chosen]
    assert texts(page, "lacks") == [report.facts.lacks[report.facts.chosen]]
    page.get_by_label("Budget", exact=True).focus()
    page.keyboard.press("Home")
    assert page.locator("#lacks").is_hidden()


def test_names_from_data_are_harmless(visit, hostile):
    page = visit(hostile)
    page.get_by_label("Row", exact=True).select_option("0")
    page.keyboard.press("Home")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in page.locator("#features").inner_text()
    assert f"{HOSTILE}g" in page.locator("#groups").inner_text()
    assert f"{HOSTILE}yes" in page.locator("#confusion").inner_text()
    assert hostile.page.count("</script>") == 4


def test_only_its_own_scripts_run(browser, report, tmp_path):
    page = browser.new_page()
    page.goto(report.save(tmp_path / "report.html").as_uri())
    page.evaluate("addEventListener('securitypolicyviolation', () => { window.refused = true; })")
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<p id=x onclick=\"window.hacked=1\">x</p>')"
    )
    page.locator("#x").click()
    page.wait_for_function("() => window.refused")
    assert page.evaluate("window.hacked") is None
    page.close()


def test_notebooks_show_the_page_in_a_frame(browser, report):
    page = browser.new_page()
    page.set_content(report._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator("[data-drawn]").wait_for(state="attached", timeout=20_000)
    assert frame.locator("h1").inner_text() == "Wine & <prices>"
    page.close()
