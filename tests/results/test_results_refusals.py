import copy
import pickle

import pytest

from dpmodels.errors import NotAvailable, PrivacyError


@pytest.mark.parametrize("name", ["scores", "fittedvalues", "resid"])
def test_what_exists_for_rows_only_is_not_available(make, name):
    fit = make()
    assert not hasattr(fit, name)
    assert getattr(fit, name, None) is None
    with pytest.raises(NotAvailable, match=name) as raised:
        getattr(fit, name)
    assert "transform(newdata)" in str(raised.value)
    assert isinstance(raised.value, AttributeError)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_results_are_not_pickled(make, protocol):
    with pytest.raises(PrivacyError, match="save"):
        pickle.dumps(make(), protocol=protocol)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_results_are_not_copied(make, way):
    with pytest.raises(PrivacyError, match="save"):
        way(make())


def test_results_do_not_change(make):
    fit = make()
    with pytest.raises(AttributeError):
        fit.release = None
    with pytest.raises(AttributeError):
        fit.loadings = None


def test_changing_what_was_handed_out_changes_nothing(make):
    fit = make(noise=0.01)
    before = fit.summary().as_text()
    panel = fit.noise()
    panel["eigenvalue"] = -1.0
    fit.eigenvals[:] = 0.0
    fit.sdev[:] = 0.0
    assert fit.summary().as_text() == before


def test_loadings_handed_out_are_a_copy(make):
    fit = make(noise=0.01)
    before = fit.summary().as_text()
    fit.loadings[:] = 0.0
    fit.center[:] = 9.0
    assert fit.summary().as_text() == before
