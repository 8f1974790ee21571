"""``python -m budgetforest`` is the command line."""

from budgetforest.cli import main

main(prog_name="budgetforest")
