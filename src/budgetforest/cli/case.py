"""One case of ``budgetforest acquire``: what was known and answered, to take back, to keep and to resume."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from budgetforest.cli.output import plain, written_whole
from budgetforest.cli.typed_values import value_of
from budgetforest.runtime.errors import InvalidData, near

if TYPE_CHECKING:
    from budgetforest.acquisition.session import Acquisition


class Case:
    """A row that is being decided. What is not in ``known`` is paid for."""

    def __init__(self, model: Any, known: dict[str, Any], limit: float | None, answer: str | None) -> None:
        self.known = known
        self.limit, self.answer = limit, answer
        self.answers: list[tuple[str, Any]] = []
        self._model = model
        self.flow: Acquisition = self._begun()

    def _begun(self) -> Acquisition:
        flow: Acquisition = self._model.acquire(self.known, limit=self.limit, answer=self.answer)
        return flow

    @property
    def facts(self) -> dict[str, Any]:
        """All that is known, or known not to be had."""
        return self.known | dict(self.answers)

    def give(self, feature: str, value: Any) -> None:
        """Take an answer."""
        with suppress(StopIteration):  # it was the last one
            self.flow.send({feature: value})
        self.answers.append((feature, value))

    def undo(self) -> str | None:
        """Take back the last answer, as if it had not been given; returns its feature, if there is one."""
        if not self.answers:
            return None
        *left, (feature, _) = self.answers
        self.answers, self.flow = [], self._begun()
        for answer in left:
            self.give(*answer)
        return feature


class Record(NamedTuple):
    """A case in a file: one that was decided, or was left before that."""

    model: str
    """The name of its file."""
    budget: float | None
    limit: float | None
    answer: str | None
    known: dict[str, Any]
    steps: list[dict[str, Any]]
    """Feature, value (None if it could not be had) and cost of each answer."""


def save_record(path: Path, case: Case, model: Path, budget: float | None) -> None:
    """Write a case, with what is believed by now."""
    decision = case.flow.decide()
    steps = [{"feature": s.feature, "value": plain_value(s.value), "cost": s.cost} for s in decision.trace]
    known = {name: plain_value(value) for name, value in case.known.items()}
    document = Record(model.name, budget, case.limit, case.answer, known, steps)._asdict() | {
        "spent": decision.spent,
        "decided": case.flow.need is None,
        "certain": decision.certain,
        "label": decision.label,
        "belief": dict(zip(decision.classes, decision.belief, strict=True)),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with written_whole(path) as beside:
        beside.write_text(json.dumps(plain(document), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def plain_value(value: Any) -> Any:
    """A value as JSON has it; null if it could not be had."""
    from budgetforest.acquisition.session import UNAVAILABLE

    return None if value is UNAVAILABLE else plain(value)


def read_record(path: Path) -> Record:
    """A record, if it is one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        record = Record(**{name: document[name] for name in Record._fields})
        answers = [(step["feature"], step["value"]) for step in record.steps] + [*record.known.items()]
        numbers = [number for number in (record.budget, record.limit) if number is not None]
        if not all(isinstance(name, str) for name, _ in answers) or not all(n >= 0 for n in numbers):
            raise ValueError("names are texts, amounts are numbers")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InvalidData(
            f"{str(path)!r} must be a record as `acquire --record` writes it; got another file"
        ) from None
    return record


def recorded_values(record: Record, path: Path, model: Any) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """What a record has as known, and its answers, as a model takes them."""
    known = {name: _recorded(name, value, path, model) for name, value in record.known.items()}
    steps = [(step["feature"], step["value"]) for step in record.steps]
    return known, [(name, _recorded(name, value, path, model)) for name, value in steps]


def _recorded(name: str, value: Any, path: Path, model: Any) -> Any:
    """A value of a record, read as if it were typed again."""
    names = model.forest_.schema.names
    if name not in names:
        raise InvalidData(
            f"the record {str(path)!r} is of another model: {name!r} is not a feature of this one; "
            f"{near(name, names)}"
        )
    try:
        return value_of("unknown" if value is None else str(value), name, model)
    except InvalidData as error:
        raise InvalidData(f"the record {str(path)!r} is of another model: {error}") from None
