import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from budgetforest import UnusualData

settings.register_profile(
    "default",
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "20")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


@pytest.fixture(scope="session")
def data_folder():
    """The folder of real data sets; tests that want it are skipped without."""
    folder = os.environ.get("BUDGETFOREST_DATA")
    if not folder:
        pytest.skip("real data: set BUDGETFOREST_DATA to a folder with covtype.parquet and others")
    return Path(folder)


@pytest.fixture
def quiet():
    """Small random tables have constant columns and absent classes; that is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusualData)
        yield
