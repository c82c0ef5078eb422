"""The choice of tests by what changed."""

import changed
import pytest


@pytest.mark.product
def test_a_changed_file_has_its_own_tests_and_those_of_its_importers(monkeypatch):
    file = changed.ROOT / "dpmodels/results/classifiers.py"
    monkeypatch.setattr(changed, "changed_files", lambda revision: {file})
    chosen = changed.tests("HEAD")
    assert "tests/models/test_models_svm.py" in chosen
    assert "tests/formula/test_formula_parse.py" not in chosen


def test_where_nothing_changed_nothing_is_chosen(monkeypatch):
    monkeypatch.setattr(changed, "changed_files", lambda revision: set())
    assert changed.tests("HEAD") == []
