"""The hint that follows an unknown name."""

import pytest

from budgetforest.runtime.errors import near

NAMES = ["age", "Systolic pressure", "systolic_pressure_2", "mri", "blood_sugar", "blood_count", "Größe"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("AGE", "did you mean 'age'?"),
        (" mri ", "did you mean 'mri'?"),
        ("systolic_pressure", "did you mean 'Systolic pressure'?"),
        ("systolic-presure", "did you mean 'Systolic pressure' or 'systolic_pressure_2'?"),
        ("BloodSuger", "did you mean 'blood_sugar'?"),
        ("GRÖSSE", "did you mean 'Größe'?"),
        ("pressure", "did you mean 'Systolic pressure'?"),
        ("sys", "did you mean 'Systolic pressure' or 'systolic_pressure_2'?"),
        ("mri_left_knee", "did you mean 'mri'?"),
        (
            "weight",
            "known names: 'age', 'Systolic pressure', 'systolic_pressure_2', 'mri', 'blood_sugar', ...",
        ),
        ("?", "known names: 'age', 'Systolic pressure', 'systolic_pressure_2', 'mri', 'blood_sugar', ..."),
    ],
)
def test_a_hint_names_what_may_be_meant(name, hint):
    assert near(name, NAMES) == hint


def test_names_of_signs_alone_are_told_apart():
    assert near("%", ["#", "$"]) == "known names: '#', '$'"
    assert near("a b", ["A_B", "a-b", "c"]) == "did you mean 'A_B' or 'a-b'?"
