"""A warning that the package gives, numpy's included, fails the test that met it."""

import warnings

import pytest


def warn_from(module):
    warnings.warn_explicit("divide by zero", RuntimeWarning, "planted.py", 1, module=module)


def test_a_warning_from_the_package_is_an_error():
    with pytest.raises(RuntimeWarning):
        warn_from("dpmodels.design.planted")


def test_a_warning_from_elsewhere_is_a_warning():
    with pytest.warns(RuntimeWarning):
        warn_from("elsewhere.planted")
