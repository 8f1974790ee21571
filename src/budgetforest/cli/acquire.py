"""``budgetforest acquire``: asks a person for one value at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from budgetforest.cli.case import Case, Record, plain_value, read_record, recorded_values, save_record
from budgetforest.cli.inputs import DECIMAL, FILE, Amount, decimal_options, load_model, model_argument
from budgetforest.cli.output import OutFile, WritingCommand, json_option, write_json
from budgetforest.cli.typed_values import is_category, is_outside, kind_of, range_of, value_of
from budgetforest.runtime.errors import InvalidData, InvalidValue, near

if TYPE_CHECKING:
    from budgetforest.acquisition.session import Acquisition, Decision, Need, Step

HELP, UNDO = ("?", "help"), "undo"


@click.command(cls=WritingCommand)
@model_argument
@click.option(
    "--known", multiple=True, metavar="FEATURE=VALUE", help="A value that is free; may be repeated."
)
@decimal_options
@click.option("--limit", type=Amount(0), help="The most this row may pay.")
@click.option("--answer", type=click.Choice(["label", "proba"]), help="What is asked for, if not as trained.")
@click.option("--record", type=OutFile(".json"), help="File to keep the case in, also if it ends early.")
@click.option("--resume", type=FILE, help="Such a file: begin with its answers, limit and budget.")
@json_option
def acquire(
    model: Path,
    budget: float | None,
    known: tuple[str, ...],
    limit: float | None,
    answer: str | None,
    record: Path | None,
    resume: Path | None,
    as_json: bool,
) -> None:
    """Decide one row, asking for one value at a time.

    Answer "unknown" if a value cannot be had, "undo" to take back the last answer, "?" for help.

    Questions go to stderr and answers come from stdin, so that the decision can be piped.
    """
    before = read_record(resume) if resume is not None else Record(model.name, None, None, None, {}, [])
    if before.model != model.name:
        click.echo(f"note: the record is of the model {before.model!r}, this one is {model.name!r}", err=True)
    loaded = load_model(model, before.budget if budget is None else budget)
    recorded, answers = recorded_values(before, resume or model, loaded)
    case = Case(
        loaded,
        recorded | _known(known, loaded),
        before.limit if limit is None else limit,
        before.answer if answer is None else answer,
    )
    _resume(case, answers)
    try:
        _ask(case, loaded)
    except (InvalidData, KeyboardInterrupt):
        if record is not None:
            save_record(record, case, model, loaded.budget)
            click.echo(f"\nsaved the answers so far; go on with --resume {record}", err=True)
        raise
    if record is not None:
        save_record(record, case, model, loaded.budget)
    decision = case.flow.decide()
    if as_json:
        write_json(decision._asdict() | {"trace": [_document(step, decision) for step in decision.trace]})
    else:
        click.echo(decision.explain())


def _document(step: Step, decision: Decision) -> dict[str, Any]:
    """A step as data, with the reason if its value could not be had."""
    reason = decision.unavailable.get(step.feature)
    return step._asdict() | {"value": plain_value(step.value), "unavailable": reason}


def _known(pairs: tuple[str, ...], model: Any) -> dict[str, Any]:
    found, names = {}, model.forest_.schema.names
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InvalidData(f"--known is {pair!r}; write it as FEATURE=VALUE")
        if name not in names:
            raise InvalidData(f"--known names {name!r}, which is not a feature; {near(name, names)}")
        found[name] = value = _value(text, name, model)
        if is_outside(value, name, model):
            _warn(
                f"note: {_outside(value, name, model)}, where {name!r} was in training; it is taken as known"
            )
    return found


def _outside(value: float, name: str, model: Any) -> str:
    low, high = range_of(name, model) or (value, value)
    return f"{value:g} is outside {low:g} to {high:g}"


def _warn(message: str) -> None:
    click.secho(message, fg="yellow", err=True)


def _value(text: str, name: str, model: Any) -> Any:
    """What a person typed, with the decimal sign of the command."""
    return value_of(text, name, model, click.get_current_context().meta[DECIMAL])


def _resume(case: Case, answers: list[tuple[str, Any]]) -> None:
    """Give the answers of a record, as far as they are asked for."""
    for place, (feature, value) in enumerate(answers):
        if case.flow.need is None:
            if case.flow.limited:
                raise InvalidData(f"--limit is {case.limit:g}; it must be as much as the record has paid")
            click.echo(f"note: {len(answers) - place} answers of the record are not needed", err=True)
            return
        if feature not in case.known:
            case.give(feature, value)


def _ask(case: Case, model: Any) -> None:
    """Ask until the row is decided."""
    if case.flow.need is not None:
        _repeat(case)
        click.echo("  type ? for help", err=True)
    while (need := case.flow.need) is not None:
        _describe(case.flow, need)
        _take(case, need, model)


def _repeat(case: Case) -> None:
    """What is known by now."""
    if case.facts:
        click.echo(f"  known: {_facts(case)}", err=True)


def _facts(case: Case) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in case.facts.items())


def _shown(value: Any) -> str:
    from budgetforest.acquisition.session import UNAVAILABLE

    return "unknown" if value is UNAVAILABLE else f"{value:g}" if isinstance(value, float) else str(value)


def _describe(flow: Acquisition, need: Need) -> None:
    """What is believed so far, and what is asked for next."""
    from budgetforest.trees.forest import Voting

    state = flow.decide()
    if flow.trace:
        last = flow.trace[-1]
        if flow.forest.voting == Voting.SCORES:
            click.echo(f"  belief: {_beliefs(state)}", err=True)
        else:
            click.echo(f"  votes: {_votes(last.votes, last.possible, state)}", err=True)
    click.echo(
        f"{click.style(need.feature, bold=True)} ({_price(flow, need)}; {need.spent:g} spent; {need.why})",
        err=True,
    )


def _price(flow: Acquisition, need: Need) -> str:
    costs, j = flow.forest.costs, flow.forest.schema.names.index(need.feature)
    return f"costs {need.cost:g}" + (f", group {need.group}" if costs.shared[j] else "")


def _votes(least: tuple[float, ...], most: tuple[float, ...], state: Decision) -> str:
    """Votes of every class that can still win any, and what is believed."""
    from budgetforest.acquisition.session import quoted

    outlook = zip(map(quoted, state.classes), least, most, state.belief, strict=True)
    return ", ".join(f"{name} {low:g} to {high:g} (belief {b:.0%})" for name, low, high, b in outlook if high)


def _beliefs(state: Decision) -> str:
    """What is believed of every class: scores of boosted trees are no votes."""
    from budgetforest.acquisition.session import quoted

    beliefs = zip(map(quoted, state.classes), state.belief, strict=True)
    return ", ".join(f"{name} {b:.0%}" for name, b in beliefs)


def _take(case: Case, need: Need, model: Any) -> None:
    """Ask until the answer is a value that the feature can have, or the last answer is taken back."""
    doubted = None
    while True:
        text = _typed(case, need, model)
        word = "" if is_category(text, need.feature, model) else text.lower()
        if word in HELP:
            _help(case, need, model)
        elif word == UNDO:
            if (taken := case.undo()) is not None:
                click.echo(f"  took back {taken}", err=True)
                _repeat(case)
                return
            click.echo("  there is nothing to undo", err=True)
        else:
            try:
                value = _value(text, need.feature, model)
            except InvalidValue as error:
                click.secho(f"  {error}", fg="red", err=True)
                continue
            if value == doubted or not is_outside(value, need.feature, model):
                case.give(need.feature, value)
                return
            doubted = value
            _warn(f"  {_outside(value, need.feature, model)}; type it again to keep it")


def _typed(case: Case, need: Need, model: Any) -> str:
    try:
        text: str = click.prompt(f"  {kind_of(need.feature, model)}, or unknown", err=True)
    except click.Abort as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):  # click takes both for the same
            raise KeyboardInterrupt from None
        raise InvalidData(
            f"the input ended when {need.feature!r} was asked for; until then {case.flow.decide().label!r} "
            "is likeliest, not certain"
        ) from None
    return text.strip()


def _help(case: Case, need: Need, model: Any) -> None:
    """What can be typed, and why it is asked for."""
    for line in (
        f"accepted: {kind_of(need.feature, model)}; unknown if it cannot be had, which is not paid for",
        f"{UNDO} takes back the last answer, Ctrl-C ends without a decision",
        f"why {need.feature}: {need.why}",
        f"price: {_price(case.flow, need)}; {need.spent:g} spent so far",
        f"known: {_facts(case) or 'nothing yet'}",
    ):
        click.echo(f"  {line}", err=True)
