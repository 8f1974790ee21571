"""``budgetforest acquire``: asks a person for one value at a time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from budgetforest.cli.inputs import Amount, load_model, model_argument
from budgetforest.cli.output import json_option, write_json
from budgetforest.runtime.errors import InvalidData, InvalidValue, near

if TYPE_CHECKING:
    from budgetforest.acquisition.session import Acquisition, Decision, Need
    from budgetforest.data.table import Schema


@click.command()
@model_argument
@click.option(
    "--known", multiple=True, metavar="FEATURE=VALUE", help="A value that is free; may be repeated."
)
@click.option("--limit", type=Amount(0), help="The most this row may pay.")
@click.option("--answer", type=click.Choice(["label", "proba"]), help="What is asked for, if not as trained.")
@json_option
def acquire(
    model: Path,
    budget: float | None,
    known: tuple[str, ...],
    limit: float | None,
    answer: str | None,
    as_json: bool,
) -> None:
    """Decide one row, asking for one value at a time.

    Answer "unknown" if a value cannot be had.

    Questions go to stderr and answers come from stdin, so that the decision can be piped.
    """
    loaded = load_model(model, budget)
    schema = loaded.forest_.schema
    flow = loaded.acquire(_known(known, schema), limit=limit, answer=answer)
    while (need := flow.need) is not None:
        _describe(flow, need)
        _send(flow, need, schema)
    decision = flow.decide()
    if as_json:
        write_json(decision._asdict() | {"trace": [step._asdict() for step in decision.trace]})
    else:
        click.echo(decision.explain())


def _known(pairs: tuple[str, ...], schema: Schema) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InvalidData(f"--known is {pair!r}; write it as FEATURE=VALUE")
        if name not in schema.names:
            raise InvalidData(f"--known names {name!r}, which is not a feature; {near(name, schema.names)}")
        found[name] = _value(text, name, schema)
    return found


def _describe(flow: Acquisition, need: Need) -> None:
    """What is known so far, and what is asked for next."""
    from budgetforest.trees.forest import Voting

    state = flow.decide()
    if flow.trace:
        last = flow.trace[-1]
        if flow.forest.voting == Voting.SCORES:
            click.echo(f"  belief: {_beliefs(state)}", err=True)
        else:
            click.echo(f"  votes: {_votes(last.votes, last.possible, state)}", err=True)
    costs, j = flow.forest.costs, flow.forest.schema.names.index(need.feature)
    group = f", group {need.group}" if costs.shared[j] else ""
    price = f"costs {need.cost:g}{group}; {need.spent:g} spent; {need.why}"
    click.echo(f"{click.style(need.feature, bold=True)} ({price})", err=True)


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


def _send(flow: Acquisition, need: Need, schema: Schema) -> None:
    """Ask until the answer is a value that the feature can have."""
    while True:
        try:
            text = click.prompt(f"  {_kind(need.feature, schema)}, or unknown", err=True)
        except click.Abort as stop:
            if isinstance(stop.__context__, KeyboardInterrupt):  # click takes both for the same
                raise KeyboardInterrupt from None
            raise InvalidData(
                f"the input ended when {need.feature!r} was asked for; until then {flow.decide().label!r} is "
                "likeliest, not certain"
            ) from None
        try:
            flow.send(_value(text, need.feature, schema))
        except StopIteration:
            return
        except InvalidValue as error:
            click.secho(f"  {error}", fg="red", err=True)
        else:
            return


def _kind(name: str, schema: Schema) -> str:
    """What a feature can be."""
    categories = schema.categories[schema.names.index(name)]
    if categories is None:
        return "a number"
    shown = [repr(c) if "," in str(c) else str(c) for c in categories[:8]]
    return ", ".join(shown) + (", ..." if len(categories) > 8 else "")


def _value(text: str, name: str, schema: Schema) -> Any:
    """What a person typed, as the feature has it."""
    from budgetforest.acquisition.session import UNAVAILABLE
    from budgetforest.files.coding import UNSEEN, Coder

    text = text.strip()
    if text == "unknown" or text in schema.missing:
        return UNAVAILABLE
    categories = schema.categories[schema.names.index(name)]
    if categories is not None:
        code = Coder(categories, schema.missing)[text]
        if code == UNSEEN:
            raise InvalidValue(f"{name!r} is {text!r}; it must be one of {_kind(name, schema)}, or unknown")
        return categories[int(code)]
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValue(f"{name!r} is {text!r}; it must be a finite number, or unknown")
    return number
