"""What a report says: every figure, measured once on the same rows for every forest of the path."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from budgetforest import __version__
from budgetforest.inference.predict import charge, scores
from budgetforest.inference.trace import Trace, trace_of
from budgetforest.report.curve import FREE, NOTHING, free_forest
from budgetforest.report.examples import Story, representative, stories_of
from budgetforest.report.exits import Bar, Calibrated, calibration, histograms
from budgetforest.report.flow import FlowBlock, flow_of
from budgetforest.report.missing import Lacks, lacks_of
from budgetforest.report.sample import Rows, rows_of, seen_share
from budgetforest.report.spending import Spending, by_feature, by_group
from budgetforest.runtime.arrays import Anything, Counts, Flags, Floats, Ids
from budgetforest.runtime.errors import UnusualData
from budgetforest.runtime.progress import late_progress
from budgetforest.selection.estimate import interval
from budgetforest.selection.verdict import by_class, verdict_on
from budgetforest.trees.convert import from_sklearn
from budgetforest.trees.forest import Answer, Forest, first_trees

MOST_POINTS = 40
"""Forests of the path that the slider visits."""
SEEN = 0.1
"""From this share of rows on that training has seen, people are told."""
MOST_CLASSES = 12
"""Classes in the confusion matrix; the rarer ones are counted as others there, and only there."""


@dataclass(frozen=True)
class Figures:
    """One forest of the path on the measured rows."""

    budget: float | None
    """The budget it is taken for, None for no limit."""
    what: str
    """Which forest it is, for people."""
    trees: int
    cost: float
    """What an average row pays."""
    error: float
    low: float
    high: float
    """Between these the error would lie on other rows of the same kind, 95 of 100 times."""
    features: float
    """How many features an average row acquires."""
    certain: float
    """Share of rows whose label was certain, not only believed."""
    full_cost: float
    """What an average row would pay if every tree were asked."""
    full_error: float
    """And how often the label would then be wrong."""


@dataclass(frozen=True)
class Peer:
    """The baseline that the caller gave."""

    name: str
    cost: float
    error: float


@dataclass(frozen=True)
class TreeBound:
    """A tree's certificate; None where nothing is proven."""

    max_cost: float
    lower_bound: float | None
    ratio: float | None
    factor: float | None


@dataclass(frozen=True)
class Facts:
    """All figures. Lists with an entry for every forest of the path are in the order of the slider."""

    title: str
    written: str
    version: str
    rows: int
    """Rows that were measured."""
    rows_given: int
    classes: list[str]
    class_rows: list[int]
    n_features: int
    total_cost: float
    """The most that a row can pay for every feature."""
    scored: bool
    """Whether rows pay for every score (the paper's accounting), so that nothing exits early."""
    chosen: int
    """Which of the points is the model's own forest."""
    common_error: float
    """How often the most common class of the training rows is wrong."""
    seen: float | None
    """The share of the rows that training has seen, as far as is known."""
    flattered: bool
    """Whether these are so many that errors seem smaller than they are."""
    verdicts: list[str]
    """Of every forest: whether it is better than the most common class."""
    lacks: list[str]
    """Of every forest: what rows asked for and lacked, in a sentence; nothing if there was nothing."""
    currency: str
    """What stands before prices, maybe nothing."""
    row_name: str
    """What a row is: a patient, a customer."""
    peer: Peer | None
    points: list[Figures]
    features: list[list[Spending]]
    groups: list[list[Spending]]
    exits: list[Bar]
    calibration: list[Calibrated]
    confusion_classes: list[str]
    confusion: list[list[list[int]]]
    """Counts by truth, then by label."""
    by_class: list[list[tuple[float | None, float | None]]]
    """Recall and precision of every class; None where there are no rows."""
    flow: list[FlowBlock]
    stories: list[Story]
    certificates: list[TreeBound]
    prices: list[tuple[str, float, str]]
    """Of the features that any forest acquired: name, price, group or nothing."""
    parameters: dict[str, str]
    """Of the training; before them the files that the model and the rows come from, if they are known."""


class Measured(NamedTuple):
    """A forest and what it did to every row."""

    budget: float | None
    what: str
    forest: Forest
    course: Trace
    full_spent: Floats
    full_wrong: Flags


def gather(
    model: Any,
    X: Anything,
    y: Anything,
    *,
    title: str,
    baseline: Any = None,
    files: Mapping[str, str] | None = None,
    currency: str = "",
    row_name: str = "row",
) -> Facts:
    """Measure a fitted model on labelled rows."""
    rows = rows_of(model, X, y)
    answer: Answer = model.acquire().answer
    own, path = _measure(model, rows, answer)
    measured = [*path, own]
    costs, names = model.costs_, model.forest_.schema.names
    courses = [m.course for m in measured]
    classes = [str(label) for label in model.classes_]
    shown, confusion_classes = _shown_classes(rows.truth, classes)
    common = int(model.forest_.prior.argmax())
    picked = representative(own.course, rows.truth)
    points = [_figures(m, rows.truth) for m in measured]
    seen = seen_share(rows, model._trained.seen, model)
    return Facts(
        title=title,
        written=datetime.date.today().isoformat(),
        version=__version__,
        rows=len(rows.truth),
        rows_given=len(y),
        classes=classes,
        class_rows=np.bincount(rows.truth, minlength=len(classes)).tolist(),
        n_features=len(names),
        total_cost=costs.most,
        scored=answer == Answer.PROBA,
        chosen=len(path),
        common_error=float((rows.truth != common).mean()),
        seen=seen,
        flattered=seen is not None and seen >= SEEN,
        verdicts=[
            _verdict(course.labels, rows.truth, model.classes_.tolist(), common, point)
            for course, point in zip(courses, points, strict=True)
        ],
        lacks=[_lacks(course, rows.X).told(names, row_name) for course in courses],
        currency=currency,
        row_name=row_name,
        peer=_peer(baseline, rows, model),
        points=points,
        features=[by_feature(course, costs, names) for course in courses],
        groups=[by_group(course, costs) for course in courses],
        exits=histograms(courses, [m.forest.n_trees for m in measured]),
        calibration=calibration(courses, rows.truth),
        confusion_classes=confusion_classes,
        confusion=[
            _confusion(shown[rows.truth], shown[c.labels], len(confusion_classes)).tolist() for c in courses
        ],
        by_class=[_by_class(_confusion(rows.truth, c.labels, len(classes)), classes) for c in courses],
        flow=flow_of(courses, names),
        stories=stories_of(courses, rows.X, rows.truth, rows.number, picked, model.forest_.schema),
        certificates=[_bound(certificate) for certificate in model.certificates_],
        prices=_prices(courses, costs, names),
        parameters={name: _short(value) for name, value in {**(files or {}), **_parameters(model)}.items()},
    )


def _measure(model: Any, rows: Rows, answer: Answer) -> tuple[Measured, list[Measured]]:
    """The model's own forest, and those of its path by ascending budget, beginning with no tree."""
    offered = list(_forests(model))
    measured = []
    with late_progress("measuring the path", len(offered)) as tell:
        for done, (budget, what, forest) in enumerate(offered, 1):
            spent = charge(forest, rows.X, Answer.PROBA).spent
            wrong = scores(forest, rows.X).argmax(axis=1) != rows.truth
            course = trace_of(forest, rows.X, answer)
            measured.append(Measured(budget, what, forest, course, spent, wrong))
            tell(done)
    return measured[0], measured[1:]


def _forests(model: Any) -> Iterator[tuple[float | None, str, Forest]]:
    """Budget, what it is, forest: first the model's own, then others of the path."""
    own = model.forest_
    threshold = f", exit at {own.threshold:.3g}" if own.threshold < math.inf else ""
    yield model.budget, f"{own.n_trees} trees{threshold}", own
    if what := free_forest(model):
        yield 0.0, what, model.at_budget(FREE).forest_
    elif own.n_trees:
        yield 0.0, NOTHING, first_trees(own, 0)
    useful = [point for point in model.path_ if point.cost > 0]  # NaN without validation rows
    kept = np.unique(np.linspace(0, len(useful) - 1, min(len(useful), MOST_POINTS)).round().astype(int))
    for point in (useful[k] for k in kept):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusualData)
            forest = model.at_budget(point.cost).forest_
        if not _same(forest, own):
            yield point.cost, str(point), forest


def _same(one: Forest, other: Forest) -> bool:
    """Whether two forests of one path decide alike."""
    same_trees = np.array_equal(one.roots, other.roots) and np.array_equal(
        one.nodes.counts, other.nodes.counts
    )
    return bool(same_trees and one.threshold == other.threshold)


def _figures(m: Measured, truth: Ids) -> Figures:
    error = float((m.course.labels != truth).mean())
    low, high = interval(error, len(truth))
    return Figures(
        budget=m.budget,
        what=m.what,
        trees=m.forest.n_trees,
        cost=float(m.course.spent[:, -1].mean()),
        error=error,
        low=low,
        high=high,
        features=float((m.course.order >= 0).sum(axis=1).mean()),
        certain=float(m.course.certain.mean()),
        full_cost=float(m.full_spent.mean()),
        full_error=float(m.full_wrong.mean()),
    )


def _peer(baseline: Any, rows: Rows, model: Any) -> Peer | None:
    if baseline is None:
        return None
    wrong = np.asarray(baseline.predict(rows.given)) != np.asarray(model.classes_)[rows.truth]
    cost = model.costs_.most
    if _is_forest(baseline):
        cost = float(charge(from_sklearn(baseline, model.costs_), rows.X, Answer.LABEL).spent.mean())
    return Peer(type(baseline).__name__, cost, float(wrong.mean()))


def _is_forest(baseline: Any) -> bool:
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    return isinstance(baseline, RandomForestClassifier | ExtraTreesClassifier | DecisionTreeClassifier)


def _shown_classes(truth: Ids, classes: Sequence[str]) -> tuple[Ids, list[str]]:
    """Where each class stands in the confusion matrix, and what stands there."""
    if len(classes) <= MOST_CLASSES:
        return np.arange(len(classes), dtype=np.int32), list(classes)
    often = np.argsort(-np.bincount(truth, minlength=len(classes)), kind="stable")
    kept = np.sort(often[: MOST_CLASSES - 1])
    place = np.full(len(classes), len(kept), np.int32)
    place[kept] = np.arange(len(kept))
    return place, [*(classes[c] for c in kept), f"{len(classes) - len(kept)} others"]


def _confusion(truth: Ids, label: Ids, k: int) -> Counts:
    """(k, k) how many rows there are by truth, then by label."""
    return np.bincount(truth * k + label, minlength=k * k).reshape(k, k)


def _by_class(confusion: Counts, classes: Sequence[str]) -> list[tuple[float | None, float | None]]:
    return [(_known(each.recall), _known(each.precision)) for each in by_class(confusion, classes)]


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


def _verdict(label: Ids, truth: Ids, classes: Sequence[Any], common: int, point: Figures) -> str:
    if point.trees == 0:
        return f"It always answers {str(classes[common])!r}, which is wrong for {point.error:.1%}."
    counts = _confusion(truth, label, len(classes))
    return str(verdict_on(counts, classes, common, len(truth), (point.error, point.low, point.high)))


def _lacks(course: Trace, X: Floats) -> Lacks:
    acquired = np.zeros(X.shape, bool)
    row, step = np.nonzero(course.order >= 0)
    acquired[row, course.order[row, step]] = True
    return lacks_of(acquired, X)


def _bound(certificate: Any) -> TreeBound:
    if not math.isfinite(certificate.lower_bound):  # a tree that the theorem does not speak of
        return TreeBound(float(certificate.max_cost), None, None, None)
    return TreeBound(float(certificate.max_cost), *(_known(float(figure)) for figure in certificate[1:]))


def _prices(courses: Sequence[Trace], costs: Any, names: Sequence[str]) -> list[tuple[str, float, str]]:
    """The price list of what any forest acquired, dearest first."""
    used = np.unique(np.concatenate([course.order.ravel() for course in courses]))
    used = used[used >= 0]
    used = used[np.argsort(-costs.cost[used], kind="stable")]
    shared = np.bincount(costs.group) > 1
    return [
        (names[j], float(costs.cost[j]), costs.group_names[g] if shared[g := costs.group[j]] else "")
        for j in used.tolist()
    ]


def _parameters(model: Any) -> dict[str, Any]:
    """The estimator's parameters; a loaded model remembers those of its training."""
    found: dict[str, Any] = (
        model.get_params() if hasattr(model, "get_params") else model.training_["parameters"]
    )
    return found


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else value
    return text if len(text) <= 60 else f"{text[:57]}..."
