"""Which forest to take at a budget: BUDGETRF of the paper, and the search of ``method="auto"``."""
