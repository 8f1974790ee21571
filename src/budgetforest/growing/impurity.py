"""Admissible impurities: how mixed a set of rows is, as a function of its class counts.

An impurity is *admissible* (section 2.2 of the paper) when it is non-negative, zero on pure sets,
monotone, supermodular, and its logarithm grows like log n. Threshold-Pairs, Powers and Polynomial are;
entropy and Gini are not and serve for comparison. Kernels choose by code, see ``impurity``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetforest.runtime.arrays import Anything, Floats
from budgetforest.runtime.errors import InvalidParameter
from budgetforest.runtime.jit import array_at, counts_callback, inner, kernel, own_callback


class ImpurityKind(IntEnum):
    """The code of an impurity."""

    PAIRS = 0
    POWERS = 1
    POLYNOMIAL = 2
    ENTROPY = 3
    GINI = 4
    CUSTOM = 5


PAIRS, POWERS, POLYNOMIAL, ENTROPY, GINI, CUSTOM = (int(kind) for kind in ImpurityKind)


class Impurity(NamedTuple):
    """An impurity as kernels take it."""

    kind: int
    """A ``ImpurityKind``."""
    params: Floats
    """Its parameters, in the order its class lists them."""
    other: Any
    """F as a callback, unless it is that of pairs: kernels contain that alone, and so compile sooner."""


@dataclass(frozen=True)
class ThresholdPairs:
    """Eq. 7: the sum over pairs of classes of [[n_i - a]+ [n_j - a]+ - a^2]+, each pair once.

    ``offset=False`` leaves out the a^2, as the paper's worked example does (30/30 rows, a = 8: 484).
    ``alpha=None`` takes the estimator's.
    """

    alpha: float | None = None
    offset: bool = True


@dataclass(frozen=True)
class Powers:
    """(sum n_i)^l - sum n_i^l for l = 2, 3, ..."""

    l: int = 2  # noqa: E741  (the paper's letter)


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms (gamma, (p_1, ..., p_k)), each gamma n_1^p_1 ... n_k^p_k.

    Admissible when every gamma is non-negative and every term has at least two classes.

    >>> pairs_of_three = Polynomial([(1, (1, 1, 0)), (1, (1, 0, 1)), (1, (0, 1, 1))])
    """

    terms: Sequence[tuple[float, Sequence[int]]]


@dataclass(frozen=True)
class Entropy:
    """Entropy in natural logarithms; below ``alpha`` it counts as zero. Not admissible."""

    alpha: float | None = None


@dataclass(frozen=True)
class Gini:
    """1 - sum (n_i / n)^2; below ``alpha`` it counts as zero. Not admissible."""

    alpha: float | None = None


BY_NAME: dict[str, Any] = {
    "pairs": ThresholdPairs(),
    "powers": Powers(),
    "entropy": Entropy(),
    "gini": Gini(),
}


def choose(given: Anything) -> Anything:
    """The impurity object that a name, a list of terms, an object or a function stands for."""
    if isinstance(given, str):
        if given not in BY_NAME:
            raise InvalidParameter(
                f"impurity={given!r} is unknown; take one of {', '.join(map(repr, BY_NAME))}, an "
                "impurity object, polynomial terms, or a function of the class counts"
            )
        return BY_NAME[given]
    if isinstance(given, list | tuple):
        return Polynomial(given)
    if isinstance(given, ThresholdPairs | Powers | Polynomial | Entropy | Gini) or callable(given):
        return given
    raise InvalidParameter(
        f"impurity={given!r} is of type {type(given).__name__}; take a name, an impurity object, "
        "polynomial terms, or a function of the class counts"
    )


def takes_alpha(chosen: Anything) -> bool:
    """Whether the estimator's alpha means something to this impurity."""
    return isinstance(chosen, ThresholdPairs | Entropy | Gini) and chosen.alpha is None


def compiled(chosen: Anything, n_classes: int, alpha: float = 0.0) -> Impurity:
    """The kernel's form of an impurity, its parameters checked."""
    if isinstance(chosen, ThresholdPairs | Entropy | Gini):
        alpha = alpha if chosen.alpha is None else chosen.alpha
        if not 0 <= alpha < np.inf:
            raise InvalidParameter(f"alpha is {alpha}; it must be a finite number, zero or more")
    match chosen:
        case ThresholdPairs():
            return _plain(PAIRS, [alpha, chosen.offset])
        case Entropy():
            return _plain(ENTROPY, [alpha])
        case Gini():
            return _plain(GINI, [alpha])
        case Powers():
            if not isinstance(chosen.l, Integral) or chosen.l < 2:
                raise InvalidParameter(f"Powers has l={chosen.l!r}; it must be a whole number, 2 up")
            return _plain(POWERS, [chosen.l])
        case Polynomial():
            return _plain(POLYNOMIAL, _polynomial_params(chosen, n_classes))
    return Impurity(CUSTOM, np.zeros(1), _checked(chosen, n_classes))


def is_admissible(impurity: Impurity) -> bool:
    """Whether the family is proven admissible, so that the theorem holds and search may bisect."""
    return impurity.kind in (PAIRS, POWERS, POLYNOMIAL)


def is_symmetric(impurity: Impurity) -> bool:
    """Whether classes without rows can be left out of the counts."""
    return impurity.kind in (PAIRS, POWERS, ENTROPY, GINI)


def _plain(kind: int, params: Sequence[float]) -> Impurity:
    return Impurity(kind, np.array(params, np.float64), own_callback(BY_ADDRESS[kind]))


def _polynomial_params(chosen: Polynomial, n_classes: int) -> list[float]:
    """All terms in a row: gamma, p_1, ..., p_k, gamma, ..."""
    params: list[float] = []
    for term in chosen.terms:
        try:
            gamma, powers = float(term[0]), [operator.index(p) for p in term[1]]
        except (TypeError, ValueError, IndexError):
            raise InvalidParameter(
                f"polynomial term {term!r} is not (gamma, (p_1, ..., p_k)) with whole exponents"
            ) from None
        if len(powers) != n_classes:
            raise InvalidParameter(
                f"polynomial term {term!r} has {len(powers)} exponents; there are {n_classes} classes"
            )
        if not 0 <= gamma < np.inf or min(powers) < 0 or sum(p > 0 for p in powers) < 2:
            raise InvalidParameter(
                f"polynomial term {term!r} is not admissible: gamma must be zero or more, exponents "
                "whole numbers, zero or more, and at least two of them positive"
            )
        params += [gamma, *powers]
    if not params:
        raise InvalidParameter("a polynomial impurity needs at least one term")
    return params


def _checked(function: Callable[..., float], n_classes: int) -> Any:
    """A user's function as a callback, tried on a few counts."""
    name = getattr(function, "__name__", repr(function))
    try:
        callback = counts_callback(function)
        f = Impurity(CUSTOM, np.zeros(1), callback)
        tried = [np.ones(n_classes), *np.eye(n_classes), np.zeros(n_classes)]
        values = [value_of(f, counts) for counts in tried]
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidParameter(f"impurity function {name!r} does not compile with numba: {reason}") from error
    for counts, value in zip(tried, values, strict=True):
        if not 0 <= value < np.inf:
            raise InvalidParameter(
                f"impurity function {name!r} is {value} for the class counts {counts.tolist()}; it must be "
                "a finite number, zero or more, for any counts"
            )
    return callback


@kernel
def value_of(impurity: Impurity, n: Floats) -> float:
    """F of class counts ``n``, for callers in Python."""
    return evaluate(impurity, n)


@inner
def evaluate(impurity: Impurity, n: Floats) -> float:
    """F of class counts ``n``, (k) doubles."""
    params = impurity.params
    # the rest is called by address: another impurity does not recompile the growers
    if impurity.kind == PAIRS:
        return pairs(n, params[0], params[1])
    return float(impurity.other(n.ctypes, n.shape[0], params.ctypes, params.shape[0]))


@inner
def evaluate_columns(
    impurity: Impurity, counts: NDArray[np.int32], unit: float, out: Floats, before: Floats, n: Floats
) -> None:
    """F of every column of ``counts`` (k, w), the same operations in the same order as ``evaluate``."""
    k, w = counts.shape
    if impurity.kind != PAIRS:
        for j in range(w):
            for c in range(k):
                n[c] = counts[c, j] * unit
            out[j] = evaluate(impurity, n)
        return
    # features are the innermost loop from here on, neighbours in memory, so that LLVM makes vectors of it
    for j in range(w):
        out[j] = 0.0
        before[j] = 0.0
    alpha = impurity.params[0]
    # sum over i < j of n_i n_j = sum over j of n_j (n_0 + ... + n_(j-1)): O(k) instead of O(k^2)
    if alpha == 0.0:
        for c in range(k):
            for j in range(w):
                share = counts[c, j] * unit
                out[j] += before[j] * share
                before[j] += share
        return
    spare = alpha * alpha * impurity.params[1]
    for c in range(k - 1):
        for d in range(c + 1, k):
            for j in range(w):
                # no branches: terms that ``pairs`` skips add 0.0 here, so both round alike
                one = max(counts[c, j] * unit - alpha, 0.0)
                other = max(counts[d, j] * unit - alpha, 0.0)
                out[j] += max(one * other - spare, 0.0)


@inner
def pairs(n: Floats, alpha: float, offset: float) -> float:
    """Eq. 7. Every operation is monotone in the counts, so rounding keeps the sum monotone too."""
    total = 0.0
    if alpha == 0.0:
        # the sum of the counts so far, times the next: every pair once, in O(k)
        before = 0.0
        for i in range(len(n)):
            total += before * n[i]
            before += n[i]
        return total
    spare = alpha * alpha * offset
    # [n_i - a]+ = 0 makes every pair with i zero
    for i in range(len(n) - 1):
        if n[i] <= alpha:
            continue
        for j in range(i + 1, len(n)):
            if n[j] > alpha:
                pair = (n[i] - alpha) * (n[j] - alpha) - spare
                if pair > 0.0:
                    total += pair
    return total


def powers(counts: Any, k: int, params: Any, n_params: int) -> float:
    """sum_i n_i (S - n_i) (S^(l-2) + S^(l-3) n_i + ... + n_i^(l-2)): the same number, monotone terms."""
    n = array_at(counts, (k,))
    l = int(array_at(params, (n_params,))[0])  # noqa: E741
    size = 0.0
    for i in range(k):
        size += n[i]
    total = 0.0
    for i in range(k):
        # S^(l-2) + S^(l-3) n_i + ... + n_i^(l-2): Horner's scheme in S, power runs through 1, n_i, n_i^2, ...
        series = 0.0
        power = 1.0
        for _ in range(l - 1):
            series = series * size + power
            power *= n[i]
        total += n[i] * (size - n[i]) * series
    return total


def polynomial(counts: Any, k: int, params: Any, n_params: int) -> float:
    n = array_at(counts, (k,))
    terms = array_at(params, (n_params,))
    total = 0.0
    for start in range(0, n_params, k + 1):
        term = terms[start]
        for i in range(k):
            # products instead of a power: they are monotone in the counts, rounding included
            for _ in range(int(terms[start + 1 + i])):
                term *= n[i]
        total += term
    return total


def entropy(counts: Any, k: int, params: Any, n_params: int) -> float:
    n = array_at(counts, (k,))
    size = 0.0
    for i in range(k):
        size += n[i]
    total = 0.0
    for i in range(k):
        # 0 log 0 = 0
        if n[i] > 0.0:
            share = n[i] / size
            total += share * math.log(share)
    return 0.0 if -total < array_at(params, (n_params,))[0] else -total


def gini(counts: Any, k: int, params: Any, n_params: int) -> float:
    n = array_at(counts, (k,))
    size = 0.0
    for i in range(k):
        size += n[i]
    if size == 0.0:
        return 0.0
    squares = 0.0
    for i in range(k):
        squares += (n[i] / size) ** 2
    return 0.0 if 1.0 - squares < array_at(params, (n_params,))[0] else 1.0 - squares


def _idle(counts: Any, k: int, params: Any, n_params: int) -> float:
    """What stands in the place of the others for pairs."""
    return 0.0


BY_ADDRESS = {PAIRS: _idle, POWERS: powers, POLYNOMIAL: polynomial, ENTROPY: entropy, GINI: gini}
"""Functions of counts and parameters, each compiled when it is first chosen."""
