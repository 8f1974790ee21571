"""``costs.price`` for kernels: the same function, compiled into its callers."""

from __future__ import annotations

from budgetforest.data import costs
from budgetforest.runtime.jit import inlined

price = inlined(costs.price)
