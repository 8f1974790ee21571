"""Every table and figure of the paper (Nan, Wang, Saligrama, ICML 2015), and the peers beside it: one file per experiment."""

from functools import partial

from benchmarks import pages
from benchmarks.paper import ablation, appendix, examples, studies, table1, versus

EXPERIMENTS = {
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
the same for all methods; CSTC, which is slow, learns from at most 5,000 of them. The paper's own rows are published nowhere:
compare shapes and ratios.
"""

run = partial(
    pages.run,
    pages.Page("results", "paper", EXPERIMENTS, lambda found, results: HEAD.format(results=results)),
)
