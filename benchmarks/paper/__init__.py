"""Every table and figure of the paper (Nan, Wang, Saligrama, ICML 2015), and the peers beside it.

One file per experiment. Each has ``measure`` (data in, plain figures out), ``draw`` (its pictures) and ``section``
(its part of the page). Figures are kept as JSON, so that the page can be written again without measuring.
"""

import json
from pathlib import Path
from types import ModuleType

from benchmarks.paper import ablation, appendix, examples, studies, table1, versus

ROOT = Path(__file__).parents[2]
EXPERIMENTS: dict[str, ModuleType] = {
    "table1": table1,
    "examples": examples,
    "versus": versus,
    "studies": studies,
    "ablation": ablation,
    "appendix": appendix,
}
HEAD = """# The paper, and the peers beside it

Written by `make paper` from the figures in `{results}`; nothing here is typed by hand. *Cost* is the mean
price of what a test row acquires; without a price list every feature costs 1. Training, validation and test rows are
the same for all methods. The paper's own rows are published nowhere: compare shapes and ratios.
"""


def run(names: tuple[str, ...] = (), *, quick: bool = False, out: Path | None = None) -> None:
    """Measure the named experiments, or all, and write the page from all that has been measured."""
    docs, results = (out, out) if out else (ROOT / "docs", ROOT / "benchmarks" / "results" / "paper")
    docs.mkdir(parents=True, exist_ok=True)
    results.mkdir(parents=True, exist_ok=True)
    for name in names or EXPERIMENTS:
        figures = EXPERIMENTS[name].measure(quick)
        (results / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    write_page(docs, results)


def write_page(docs: Path, results: Path) -> None:
    """Pictures and ``results.md`` from the figures in a folder."""
    shown = results.relative_to(ROOT) if results.is_relative_to(ROOT) else results
    parts = [HEAD.format(results=shown)]
    for name, experiment in EXPERIMENTS.items():
        if (file := results / f"{name}.json").exists():
            figures = json.loads(file.read_text())
            experiment.draw(figures, docs)
            parts.append(experiment.section(figures))
    (docs / "results.md").write_text("\n".join(parts))
