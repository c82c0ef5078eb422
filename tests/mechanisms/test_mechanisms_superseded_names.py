"""Names of retracted and superseded mechanisms."""

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.tables import TABLES
from dpmodels.mechanisms.user_supplied import SUPERSEDED

BOOK = dp.codebook(a=(0, 1), b=(0, 1))
ROWS = {"a": [0.2, 0.7] * 50, "b": [0.1, 0.9] * 50}


@pytest.mark.parametrize("name", [*SUPERSEDED, "Wishart", "SULQ", "AG"])
@pytest.mark.parametrize(
    ("verb", "formula"), [(dp.dp_pca, "~ a + b"), (dp.dp_cov, "~ a + b"), (dp.dp_lm, "a ~ b")]
)
def test_a_retired_name_is_answered_with_what_happened_and_what_to_use(name, verb, formula):
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match=r"not offered: .*20\d\d.*; write \"") as raised:
        verb(formula, ROWS, codebook=BOOK, eps=1.0, delta=1e-6, mechanism=name, ledger=ledger)
    assert ledger.entries == ()
    assert repr(name) in str(raised.value)


def test_what_is_offered_instead_exists_and_no_retired_name_does():
    current_names = {name for table in TABLES.values() for name in table}
    assert not current_names & set(SUPERSEDED)
    for _, instead in SUPERSEDED.values():
        assert set(instead.split('"')[1::2]) <= current_names
