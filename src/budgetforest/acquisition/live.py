"""The live half of a model: acquire features while deciding, for one row or many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from budgetforest.acquisition.drivers import Policy, decide, decide_async
from budgetforest.acquisition.session import Acquisition, Decision, acquire, checked_limit
from budgetforest.runtime.errors import InvalidParameter
from budgetforest.runtime.progress import row_progress
from budgetforest.trees.forest import Forest

if TYPE_CHECKING:
    from budgetforest.acquisition.bulk import Decisions, Source


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
        chosen = self._answer(answer).name.lower()
        return acquire(self.forest_, known, chosen, limit=limit, latency=latency)

    def predict_one(
        self,
        source: Callable[[str], Any],
        *,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        answer: str | None = None,
    ) -> Decision:
        """Decide one row with ``source(feature) -> value``, called once for each feature that is needed.

        ``unavailable`` says what to do when the source fails, returns None or a bad value: "route" goes
        on without the feature and without paying, "raise" raises, a function of (feature, error, attempt)
        says whether to try again. ``limit`` is the most the row may pay.
        """
        return decide(self.acquire(known, answer=answer, limit=limit), source, unavailable)

    async def predict_one_async(
        self,
        source: Callable[[str], Awaitable[Any]],
        *,
        known: Mapping[str, Any] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        answer: str | None = None,
        latency: float = 0.0,
        timeout: float | None = None,
    ) -> Decision:
        """The same with an awaitable source; each call may take ``timeout`` seconds.

        With ``latency``, the cost of a round trip, features worth the same trip are acquired at the same
        time.
        """
        flow = self.acquire(known, answer=answer, limit=limit, latency=latency)
        return await decide_async(flow, source, unavailable, timeout)

    def predict_from(
        self,
        source: Source,
        rows: Sequence[Any],
        *,
        known: Mapping[str, Sequence[Any]] | None = None,
        limit: float | None = None,
        unavailable: Policy = "route",
        answer: str | None = None,
        in_flight: int = 1,
        progress: bool | None = None,
    ) -> Decisions:
        """Decide many rows with ``source(feature, rows) -> values``.

        ``rows`` are whatever the source knows them by: numbers, keys, records. Columns of ``known`` have None
        where a value is not known. In every round the source is called once for each feature that rows wait
        for, with all of them, at most ``in_flight`` calls at a time.
        """
        from budgetforest.acquisition.bulk import check_in_flight, decide_rows

        self._check_trained()
        if hasattr(rows, "columns"):
            raise InvalidParameter(
                "rows is a dataframe; pass what the source knows its rows by, as rows.index"
            )
        rows = list(rows)
        show = bool(self.verbose) if progress is None else progress
        with self._threads() as (pool, _), row_progress(show, len(rows)) as tell:
            return decide_rows(
                self.forest_,
                source,
                rows,
                known=known or {},
                answer=self._answer(answer),
                limit=checked_limit(limit, len(self.forest_.costs.cost)),
                unavailable=unavailable,
                in_flight=check_in_flight(in_flight),
                pool=pool,
                tell=tell,
            )
