"""The live half of a model: acquire features while deciding, for one row or many."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from budgetforest.acquisition.drivers import decide, decide_async
from budgetforest.acquisition.failures import (
    FailureRule,
    Policy,
    WrongUse,
    check_known,
    check_source,
    check_timeout,
    failure_rule,
)
from budgetforest.acquisition.session import Acquisition, Decision, acquire, checked_limit
from budgetforest.runtime.progress import row_progress
from budgetforest.trees.forest import Forest

if TYPE_CHECKING:
    from budgetforest.acquisition.answers import Source, Values
    from budgetforest.acquisition.bulk import Decisions


Errors: TypeAlias = Sequence[type[Exception]] | type[Exception]
"""Classes of errors that mean that a feature cannot be had."""


class LiveAcquisition:
    """Methods that ask for values as they are needed. Known values are free."""

    forest_: Forest
    verbose: int
    _answer: Callable[[str | None], Any]
    _threads: Callable[[], Any]

    def _check_trained(self) -> None:
        """Raise if there is no forest yet."""

    def acquire(
        self,
        known: Mapping[str, Any] | None = None,
        *,
        answer: str | None = None,
        limit: float | None = None,
        latency: float = 0.0,
    ) -> Acquisition:
        """A generator for one row: yields a ``Need``, receives a value, returns the ``Decision``."""
        self._check_trained()
        check_known(known)
        chosen = self._answer(answer).name.lower()
        return acquire(self.forest_, known, chosen, limit=limit, latency=latency)

    def predict_one(
        self,
        source: Callable[[str], Any],
        *,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        unavailable_on: Errors = (),
        answer: str | None = None,
    ) -> Decision:
        """Decide one row with ``source(feature) -> value``, called once for each feature that is needed.

        A feature cannot be had if its source returns None or raises ``FeatureUnavailable``, a
        ``TimeoutError``, a ``ConnectionError`` or an error of ``unavailable_on``. ``unavailable`` says what
        to do then: "route" goes on without the feature and without paying, "raise" raises, a function of
        (feature, error, attempt) says whether to try again. Any other error, and a value that the feature
        cannot have, raise ``SourceFailed``. ``limit`` is the most the row may pay.
        """
        rule = failure_rule(unavailable, unavailable_on)
        return decide(self.acquire(known, answer=answer, limit=limit), source, rule)

    async def predict_one_async(
        self,
        source: Callable[[str], Awaitable[Any]],
        *,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        unavailable_on: Errors = (),
        answer: str | None = None,
        latency: float = 0.0,
        timeout: float | None = None,
    ) -> Decision:
        """Decide one row as ``predict_one``, with an awaitable source; a call may take ``timeout`` seconds.

        With ``latency``, the cost of a round trip, features worth the same trip are acquired at the same
        time.
        """
        flow = self.acquire(known, answer=answer, limit=limit, latency=latency)
        rule = failure_rule(unavailable, unavailable_on)
        return await decide_async(flow, source, rule, check_timeout(timeout))

    def predict_from(
        self,
        source: Source,
        rows: Sequence[Any],
        *,
        known: Mapping[str, Sequence[Any]] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        unavailable_on: Errors = (),
        answer: str | None = None,
        in_flight: int = 1,
        progress: bool | None = None,
    ) -> Decisions:
        """Decide many rows with ``source(feature, rows) -> values``.

        ``rows`` are whatever the source knows them by: numbers, keys, records. Columns of ``known`` have None
        where a value is not known. In every round the source is called once for each feature that rows wait
        for, with all of them, at most ``in_flight`` calls at a time. It returns a value for each of them in
        their order, or a mapping or a series that is indexed by them. What cannot be had, and what is a
        mistake, is as for ``predict_one``.
        """
        check_source(source, "of a feature's name and rows that returns their values")
        rule = failure_rule(unavailable, unavailable_on)
        found = self._decide_many(source, rows, known, limit, rule, answer, in_flight, progress)
        self._warn_of_denied(found)
        return found

    async def predict_from_async(
        self,
        source: Callable[[str, Sequence[Any]], Awaitable[Values]],
        rows: Sequence[Any],
        *,
        known: Mapping[str, Sequence[Any]] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        unavailable_on: Errors = (),
        answer: str | None = None,
        in_flight: int = 1,
        progress: bool | None = None,
        timeout: float | None = None,
    ) -> Decisions:
        """Decide many rows as ``predict_from``, with an awaitable source.

        The source runs in the caller's event loop, each call for ``timeout`` seconds at most; rows are
        decided in a thread beside it.
        """
        import asyncio

        check_source(source, "of a feature's name and rows that returns an awaitable of their values")
        rule, most = failure_rule(unavailable, unavailable_on), check_timeout(timeout)
        loop, stopped = asyncio.get_running_loop(), False

        async def call(feature: str, asked: Sequence[Any]) -> Values:
            coming = source(feature, asked)
            if not inspect.isawaitable(coming):
                raise WrongUse("the source returned values, not an awaitable; use predict_from")
            return await asyncio.wait_for(coming, most)

        def ask(feature: str, asked: Sequence[Any]) -> Values:
            if stopped:  # nobody waits for the answers any more
                raise WrongUse("predict_from_async was cancelled")
            return asyncio.run_coroutine_threadsafe(call(feature, asked), loop).result()

        options = known, limit, rule, answer, in_flight, progress
        try:
            found = await asyncio.to_thread(self._decide_many, ask, rows, *options)
        finally:
            stopped = True
        self._warn_of_denied(found)  # here, where the caller's line is known
        return found

    def _decide_many(
        self,
        source: Source,
        rows: Sequence[Any],
        known: Mapping[str, Sequence[Any]] | None,
        limit: float | None,
        rule: FailureRule,
        answer: str | None,
        in_flight: int,
        progress: bool | None,
    ) -> Decisions:
        """Ask a source for many rows, after its caller's mistakes are told."""
        from budgetforest.acquisition.bulk import check_in_flight, check_rows, decide_rows

        self._check_trained()
        check_known(known)
        who = check_rows(rows)
        show = bool(self.verbose) if progress is None else progress
        with self._threads() as (pool, _), row_progress(show, len(who)) as tell:
            return decide_rows(
                self.forest_,
                source,
                who,
                known=known or {},
                answer=self._answer(answer),
                limit=checked_limit(limit, len(self.forest_.costs.cost)),
                rule=rule,
                in_flight=check_in_flight(in_flight),
                pool=pool,
                tell=tell,
            )

    def _warn_of_denied(self, found: Decisions) -> None:
        from budgetforest.acquisition.bulk import warn_of_denied

        warn_of_denied(self.forest_, found.unavailable)
