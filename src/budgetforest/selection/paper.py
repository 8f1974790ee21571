"""BUDGETRF of Algorithm 1: add trees while the mean validation cost stays within the budget.

Every threshold alpha of the impurity gives such a forest; ``path`` says which of them to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, count, islice

from budgetforest.runtime.arrays import LEAF
from budgetforest.runtime.progress import ProgressCallback, quiet
from budgetforest.selection.backend import Backend, TreeMeter
from budgetforest.selection.candidates import PLAIN, Candidate, Point, Recipe
from budgetforest.selection.evaluation import Measured
from budgetforest.selection.path import within
from budgetforest.selection.settings import Settings, context_of, plan_of
from budgetforest.selection.step_cache import StepCache, no_cache
from budgetforest.trees.forest import Answer
from budgetforest.trees.tree import Tree

ALPHAS = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 25.0, 35.0, 45.0)
"""The paper's thresholds."""
LABEL_PATIENCE = 4
"""Measured forests in a row that may pass the budget before growing stops, when rows pay for labels."""


def paper_candidates(
    backend: Backend, settings: Settings, tell: ProgressCallback = quiet, cache: StepCache = no_cache
) -> Iterator[Candidate]:
    """A forest within the budget for every alpha, dearest first; ``tell`` hears of every tree."""
    context = context_of(backend.train, settings)
    patience = 1 if settings.answer == Answer.PROBA else LABEL_PATIENCE
    for alpha in settings.alphas or growing_alphas():
        trees = backend.greedy_trees(plan_of(alpha, settings))
        # the first tree tells whether this alpha leaves anything to split
        first = next(trees)
        splits = int((first.feature != LEAF).sum())
        if splits or settings.alphas:
            # a new meter for each alpha: it adds up the trees of one forest
            meter = _told(backend.meter(context), f"alpha {alpha:g}", settings.max_trees, tell)
            forest = partial(
                budget_rf,
                chain([first], trees),
                meter,
                settings.budget,
                settings.max_trees,
                Recipe(alpha),
                patience,
            )
            # bound as a default: the name means another forest in the next round
            yield from cache(f"alpha-{alpha!r}", lambda forest=forest: [forest()])  # type: ignore[misc]
        # trees that are grown ahead are not needed
        trees.close()
        if settings.alphas is None and splits <= 1:
            return  # no larger alpha gives a cheaper tree


def budget_rf(
    trees: Iterable[Tree],
    meter: TreeMeter,
    budget: float,
    most: int,
    recipe: Recipe = PLAIN,
    patience: int = 1,
) -> Candidate:
    """BUDGETRF: trees until the first that takes the mean cost past the budget, which is dropped.

    ``meter`` adds a tree to its forest and returns the forest's mean cost and error on validation rows, or
    None where it does not measure. The cost of labels may fall again (a tie is settled sooner than a
    single tree), hence ``patience``; the cost of scores never does.
    """
    grown: list[Tree] = []
    points: list[Point] = []
    for tree in islice(trees, most):  # GREEDYTREE, each on rows drawn with replacement if ``bootstrap``
        grown.append(tree)
        measured = meter(tree)
        if measured is not None:
            points.append(Point(recipe, len(grown), measured.cost, measured.error, folds=measured.folds))
        # measured forests, not trees: the meter leaves out some
        past = [point.cost > budget for point in points[-patience:]]
        if len(past) == patience and all(past):
            break
    candidate = Candidate(recipe, grown, points, patience)
    # with patience there may be trees after the last that fits: they go too, but their points stay
    fitting = within(candidate, budget)
    return candidate._replace(trees=grown[: fitting[-1].trees if fitting else 0])


def growing_alphas() -> Iterator[float]:
    """The paper's thresholds, then doubled without end: dearer trees first, ever cheaper ones."""
    yield from ALPHAS
    for doublings in count(1):
        yield ALPHAS[-1] * 2**doublings


def _told(measure: TreeMeter, what: str, most: int, tell: ProgressCallback) -> TreeMeter:
    """The same, and ``tell`` hears of every tree."""
    trees = count(1)

    def add(tree: Tree) -> Measured | None:
        tell(what, next(trees), most)
        return measure(tree)

    return add
