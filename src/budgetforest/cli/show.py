"""``budgetforest show``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from budgetforest.cli.inputs import load_model, model_argument
from budgetforest.cli.output import json_option, print_by_class, print_table, write_json
from budgetforest.runtime.errors import InvalidParameter


@click.command()
@model_argument
@click.option("--tree", "number", type=int, metavar="N", help="Draw one tree, numbered from 1.")
@click.option("--certificates", is_flag=True, help="List the certificate of every tree.")
@json_option
def show(model: Path, budget: float | None, number: int | None, certificates: bool, as_json: bool) -> None:
    """Say what a model is, or draw one of its trees.

    Features, prices, groups, classes, certificates, and the forests for smaller budgets.
    """
    loaded = load_model(model, budget)
    if number is not None and not 1 <= number <= loaded.n_trees_:
        raise InvalidParameter(f"--tree is {number}; this forest has the trees 1 to {loaded.n_trees_}")
    if number is not None:
        from budgetforest.trees.text import tree_lines, tree_nodes

        if as_json:
            write_json(tree_nodes(loaded.forest_, number - 1))
        else:
            click.echo("\n".join(tree_lines(loaded.forest_, number - 1)))
        return
    document = _document(loaded)
    if as_json:
        write_json(document)
        return
    _print(document)
    if certificates:
        _print_certificates(document)


def _document(model: Any) -> dict[str, Any]:
    """All that is shown, as data."""
    from budgetforest.report.curve import NOTHING, forest_of
    from budgetforest.trees.forest import Voting

    schema, costs, told = model.forest_.schema, model.costs_, model.summary()
    trees = _trees_per_feature(model)
    shared = costs.shared
    features = [
        {
            "feature": name,
            "cost": float(costs.cost[j]),
            "group": costs.group_names[costs.group[j]] if shared[j] else None,
            "discount_cost": float(costs.discount[j]) if shared[j] else None,
            "values": "numbers" if schema.categories[j] is None else list(schema.categories[j]),
            "trees": trees[j],
        }
        for j, name in enumerate(schema.names)
    ]
    return {
        "budget": model.budget,
        "classes": list(model.forest_.classes),
        "trees": model.n_trees_,
        "nodes": len(model.forest_.nodes.feature),
        "exit": model.forest_.threshold,
        "scores": model.forest_.voting == Voting.SCORES,
        "missing": list(schema.missing),
        "training": model.training_,
        "features": features,
        "path": [
            {
                "budget": p.cost,
                "error": p.error,
                "low": p.low,
                "high": p.high,
                "trees": 0 if forest == NOTHING else p.trees,
                "forest": forest,
            }
            for p, forest in ((p, forest_of(model, p)) for p in model.path_)
        ],
        "verdict": told.sentence,
        "by_class": [each._asdict() for each in told.classes],
        "certificates": [certificate._asdict() for certificate in model.certificates_],
    }


def _trees_per_feature(model: Any) -> list[int]:
    """In how many trees each feature is asked for."""
    import numpy as np

    forest = model.forest_
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.roots))
    inner = forest.nodes.feature >= 0
    asked = np.zeros((forest.n_trees, len(forest.schema.names)), bool)
    asked[tree[inner], forest.nodes.feature[inner]] = True
    counts: list[int] = asked.sum(axis=0).tolist()
    return counts


def _print(document: dict[str, Any]) -> None:
    exit_at = document["exit"]
    sure = "certain" if exit_at == float("inf") else f"believed to {exit_at:.1%}"
    if document["scores"] and len(document["classes"]) > 2 and exit_at < 1:
        sure = f"ahead like one believed to {exit_at:.1%} where the others are level"
    click.echo(document["verdict"])
    click.echo(f"{document['trees']} trees, {document['nodes']} nodes; a label is taken when it is {sure}")
    click.echo(f"budget: {'no limit' if document['budget'] is None else format(document['budget'], 'g')}")
    click.echo("classes: " + ", ".join(map(str, document["classes"])))
    click.echo(f"certificates: {_certified(document['certificates'])}")
    for name, value in document["training"].items():
        click.echo(f"{name}: {_listed(value) if isinstance(value, dict) else value}")
    print_by_class(document["by_class"])
    print_table(
        "features",
        ("feature", "cost", "group", "discount", "values", "trees"),
        [
            (
                f["feature"],
                f"{f['cost']:g}",
                f["group"] or "",
                "" if f["discount_cost"] is None else f"{f['discount_cost']:g}",
                f["values"] if isinstance(f["values"], str) else ", ".join(map(str, f["values"])),
                str(f["trees"]),
            )
            for f in document["features"]
        ],
    )
    print_table(
        "a forest for every budget",
        ("from budget", "error", "interval", "trees", "forest"),
        [
            (
                f"{p['budget']:.4g}",
                f"{p['error']:.4f}",
                "" if p["low"] != p["low"] else f"{p['low']:.3f} to {p['high']:.3f}",
                str(p["trees"]),
                p["forest"],
            )
            for p in document["path"]
        ],
        brief=["forest"],
    )


def _certified(certificates: list[dict[str, float]]) -> str:
    """What is proven about all trees, in a line."""
    if not certificates:
        return "none, there are no trees"
    dearest = max(certificate["max_cost"] for certificate in certificates)
    ratios = [ratio for c in certificates if (ratio := c["ratio"]) == ratio]
    bound = (
        f"no tree is more than {max(ratios):.3g} times dearer than the best"
        if ratios
        else "no more is proven"
    )
    return f"no row pays more than {dearest:g} in any one tree; {bound}"


def _listed(parameters: dict[str, Any]) -> str:
    """Parameters that have a value."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items() if value is not None)


def _print_certificates(document: dict[str, Any]) -> None:
    print_table(
        "certificates",
        ("tree", "max cost", "lower bound", "ratio", "factor"),
        [
            (str(number), *("" if value != value else f"{value:.4g}" for value in certificate.values()))
            for number, certificate in enumerate(document["certificates"], 1)
        ],
    )
