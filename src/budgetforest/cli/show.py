"""``budgetforest show``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from budgetforest.cli.output import json_option, print_table, write_json
from budgetforest.cli.sources import load_model, model_argument
from budgetforest.errors import InvalidParameter


@click.command()
@model_argument
@click.option("--tree", "number", type=int, metavar="N", help="Draw one tree, numbered from 1.")
@click.option("--certificates", is_flag=True, help="How far each tree can be from the cheapest one.")
@json_option
def show(model: Path, budget: float | None, number: int | None, certificates: bool, as_json: bool) -> None:
    """Say what a model is: features, prices, classes, trees, and the forests for smaller budgets."""
    loaded = load_model(model, budget)
    if number is not None and not 1 <= number <= loaded.n_trees_:
        raise InvalidParameter(f"--tree is {number}; this forest has the trees 1 to {loaded.n_trees_}")
    if number is not None:
        from budgetforest.drawing import tree_lines, tree_nodes

        if as_json:
            write_json(tree_nodes(loaded.forest_, number - 1))
        else:
            click.echo("\n".join(tree_lines(loaded.forest_, number - 1)))
        return
    document = _document(loaded)
    if certificates:
        document["certificates"] = [certificate._asdict() for certificate in loaded.certificates_]
    if as_json:
        write_json(document)
    else:
        _print(document)


def _document(model: Any) -> dict[str, Any]:
    """All that is shown, as data."""
    schema, costs = model.forest_.schema, model.costs_
    trees = _trees_per_feature(model)
    shared = {name for name in costs.group_names if sum(costs.group == costs.group_names.index(name)) > 1}
    features = [
        {
            "feature": name,
            "cost": float(costs.cost[j]),
            "group": group if (group := costs.group_names[costs.group[j]]) in shared else None,
            "discount_cost": float(costs.discount[j]) if group in shared else None,
            "values": "numbers" if schema.categories[j] is None else list(schema.categories[j]),
            "trees": trees[j],
        }
        for j, name in enumerate(schema.names)
    ]
    return {
        "classes": list(model.forest_.classes),
        "trees": model.n_trees_,
        "nodes": len(model.forest_.nodes.feature),
        "exit": model.forest_.threshold,
        "missing": list(schema.missing),
        "training": model.training_,
        "features": features,
        "path": [
            {"budget": p.cost, "error": p.error, "trees": p.trees, "forest": str(p)} for p in model.path_
        ],
    }


def _trees_per_feature(model: Any) -> list[int]:
    """In how many trees each feature is asked for."""
    import numpy as np

    forest = model.forest_
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.roots))
    inner = forest.nodes.feature >= 0
    pairs = np.unique(np.column_stack([tree[inner], forest.nodes.feature[inner]]), axis=0)
    counts: list[int] = np.bincount(pairs[:, 1], minlength=len(forest.schema.names)).tolist()
    return counts


def _print(document: dict[str, Any]) -> None:
    exit_at = document["exit"]
    sure = "certain" if exit_at == float("inf") else f"believed to {exit_at:.1%}"
    click.echo(f"{document['trees']} trees, {document['nodes']} nodes; a label is taken when it is {sure}")
    click.echo("classes: " + ", ".join(map(str, document["classes"])))
    for name, value in document["training"].items():
        click.echo(f"{name}: {value}")
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
        ("from budget", "error", "trees", "forest"),
        [(f"{p['budget']:.4g}", f"{p['error']:.4f}", str(p["trees"]), p["forest"]) for p in document["path"]],
    )
    if "certificates" in document:
        print_table(
            "certificates",
            ("tree", "max cost", "lower bound", "ratio", "factor"),
            [
                (str(number), *(f"{value:.4g}" for value in certificate.values()))
                for number, certificate in enumerate(document["certificates"], 1)
            ],
        )
