"""Random forests for when features cost something at prediction time.

Names are loaded on first use, so ``import budgetforest`` takes milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BudgetForestClassifier": "classifier",
    "Model": "model",
    "save": "modelfile",
    "load": "modelfile",
    "to_json": "export",
    "to_onnx": "onnx_export",
    "prune": "pruning",
    "ThresholdPairs": "impurity",
    "Powers": "impurity",
    "Polynomial": "impurity",
    "Entropy": "impurity",
    "Gini": "impurity",
    "check_admissible": "admissible",
    "acquire": "acquisition",
    "step": "acquisition",
    "Need": "acquisition",
    "Decision": "acquisition",
    "UNAVAILABLE": "acquisition",
    "cost_error_curve": "curve",
    "curve_of": "curve",
    "Curve": "curve",
    "Choice": "curve",
    "precision_at": "curve",
    "BudgetForestError": "errors",
    "InvalidInput": "errors",
    "InvalidCosts": "errors",
    "InvalidData": "errors",
    "InvalidValue": "errors",
    "InvalidParameter": "errors",
    "NotAModelFile": "errors",
    "NewerModelFile": "errors",
    "FeatureUnavailable": "errors",
    "ClusterFailed": "errors",
    "MissingExtra": "errors",
    "BudgetForestWarning": "errors",
    "BudgetTooSmall": "errors",
    "UnusualData": "errors",
    "UntrustedCache": "errors",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'budgetforest' has no attribute {name!r}")
    value = getattr(import_module(f"budgetforest.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
