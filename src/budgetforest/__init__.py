"""Random forests for when features cost something at prediction time.

Names are loaded on first use, so ``import budgetforest`` takes milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BudgetForestClassifier": "estimators.classifier",
    "Model": "estimators.model",
    "save": "estimators.files",
    "load": "estimators.files",
    "to_json": "estimators.files",
    "to_onnx": "estimators.files",
    "prune": "estimators.prune",
    "ThresholdPairs": "growing.impurity",
    "Powers": "growing.impurity",
    "Polynomial": "growing.impurity",
    "Entropy": "growing.impurity",
    "Gini": "growing.impurity",
    "check_admissible": "growing.admissible",
    "acquire": "acquisition.session",
    "step": "acquisition.session",
    "Need": "acquisition.session",
    "Decision": "acquisition.session",
    "UNAVAILABLE": "acquisition.session",
    "Decisions": "acquisition.bulk",
    "cost_error_curve": "report.curve",
    "curve_of": "report.curve",
    "Curve": "report.curve",
    "Choice": "report.curve",
    "precision_at": "report.curve",
    "BudgetForestError": "runtime.errors",
    "InvalidInput": "runtime.errors",
    "InvalidCosts": "runtime.errors",
    "InvalidData": "runtime.errors",
    "InvalidValue": "runtime.errors",
    "InvalidParameter": "runtime.errors",
    "NotAModelFile": "runtime.errors",
    "NewerModelFile": "runtime.errors",
    "AcquisitionError": "runtime.errors",
    "FeatureUnavailable": "runtime.errors",
    "SourceFailed": "runtime.errors",
    "ClusterFailed": "runtime.errors",
    "MissingExtra": "runtime.errors",
    "BudgetForestWarning": "runtime.errors",
    "BudgetTooSmall": "runtime.errors",
    "UnusualData": "runtime.errors",
    "UntrustedCache": "runtime.errors",
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
