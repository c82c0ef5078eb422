import copy
import pickle

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable


@pytest.fixture(scope="module")
def asked():
    """Results of verbs, and one that is derived from another."""
    rows = {"a": [0.2, 0.7, 0.4] * 50, "b": [0.1, 0.9] * 75}
    words = {"codebook": dp.codebook(a=(0, 1), b=(0, 1)), "eps": 1.0, "delta": 1e-6}
    return [
        dp.dp_pca("~ a + b", rows, **words),
        dp.dp_moments("~ a + b", rows, **words).lm("a ~ b"),
    ]


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
def test_pickled_results_print_the_same(asked, protocol):
    for fit in asked:
        again = pickle.loads(pickle.dumps(fit, protocol=protocol))
        assert str(again.summary()) == str(fit.summary())
        assert again.release is not fit.release


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_copied_results_print_the_same(asked, way):
    for fit in asked:
        assert str(way(fit).summary()) == str(fit.summary())
        assert way([fit])[0].call.names == fit.call.names


@pytest.mark.product
def test_results_go_to_another_process_and_back(asked):
    joblib = pytest.importorskip("joblib")
    printed_there = joblib.Parallel(n_jobs=2)(joblib.delayed(printed)(fit) for fit in asked)
    assert [text for _, text in printed_there] == [str(fit.summary()) for fit in asked]
    assert [str(fit.summary()) for fit, _ in printed_there] == [str(fit.summary()) for fit in asked]


def printed(fit):
    """The result and its table."""
    return fit, str(fit.summary())


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


def test_a_format_is_not_an_extent_of_notes(make):
    fit = make(noise=0.01)
    with pytest.raises(ArgumentError, match=r"notes='latex': expected .*as_latex\(\)"):
        fit.summary("latex")
    assert fit.summary("all").as_text() == fit.summary(notes="all").as_text()
