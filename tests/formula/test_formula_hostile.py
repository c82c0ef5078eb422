"""Every hostile formula is refused at once, by name, with nothing read and nothing charged."""

import time
from collections.abc import Mapping

import numpy as np
import pytest
from folded import each
from hostile import BOOK, HOSTILE

import dpmodels as dp
from dpmodels.design import row_coder
from dpmodels.errors import FormulaError
from dpmodels.formula import design

FINE = [
    "~ ((((((((((x))))))))))",
    "x+y",
    "~x+y+z-z",
    "~ x\n  + y\r\n  + z\n",
    "~ x + x + x",
    "~ . - postcode - town",
    "~ -1 + s",
    "~ 0 + 1 + s",
    "~ x:x:x",
    "~ I(I(I(x)))",
    "~ log((((x + 1))))",
    "~ I(--x)",
    "~ I(+x - -x)",
    "~ I(x * 0)",
    "~ I(x == x)",
    "~ I(True * x)",
    "~ I(x + 0x10 + 1_000 + 1e-3)",
    '~ Q("x") + Q("body mass")',
    "~ Q('bo' 'dy mass')",
    "~ C(C(C(s)))",
    "~ C(g, Treatment('d')) + s - s",
    "~ (x + y)**2 - x:y",
    "~ (s + g)**8",
    "~ s * g * x",
    "~ poly(x, 10) + bs(x, 50) + bs(y, knots=(1.25, 1.5), degree=0)",
    "~ cut(log(x + 1), [0, 1, 2, 5])",
    "~ ifelse((x > 1) & ~(s == 'F'), log1p(x), -exp(-x))",
    "~ I((x > 1) | (y <= 1.5)) + (x != 3)",
    "~ clip(x, hi=10, lo=1)",
    "~ I(x ** 2 ** 2)",
    "~ I(y ** (1 / 2))",
    "~ pow(p=2, x=x)",
    "~ I(1e97 * x)",
    "~ s in ['F']",
    "~ g %in% c('a', 'b') + g",
    "~ (x not in [1, 2]) + is_missing(y)",
    "~ ifelse(is_missing(x) | (x > 3), 0, 1) + y",
    "~ sin(x) + cos(1e90 * x) + pmin(x, y, 2) + pmax(x, -z)",
    "~ . - postcode - town - starts_with('v') + contains('body')",
    "~ cut(x, c(0, 10, 100))",
    "~ " + " + ".join(f"I(v0 + {j})" for j in range(500)),
    "~ x" + " + x" * 4000,
    "~ I(x" + " + x" * 50 + ")",
]


class Exploding(Mapping):
    """Data that nobody may touch."""

    def __getitem__(self, name):
        raise AssertionError("a column was read")

    def __iter__(self):
        raise AssertionError("the names were read")

    def __len__(self):
        raise AssertionError("the length was read")


@pytest.fixture(scope="module", autouse=True)
def _imported():
    """Load what is loaded lazily, so that it is not timed."""
    rows = {"x": [1.0, 2.0]}
    dp.dp_pca("~ x", rows, codebook=BOOK, eps=1, delta=1e-6)


def name_of(formula):
    return repr(formula)[:40]


def refusal(call):
    """The one permitted kind of answer, within one second of the processor."""
    start = time.process_time()
    with pytest.raises(FormulaError) as caught:
        call()
    assert time.process_time() - start < 1
    return str(caught.value)


@pytest.mark.expensive
def test_the_corpus_is_large_and_has_no_doubles():
    formulas = [repr(formula) for formula, _ in HOSTILE]
    assert len(set(formulas)) == len(formulas) >= 80


@pytest.mark.product
@each("formula, messages", HOSTILE)
def test_hostile_formulas_are_refused_by_name(formula, messages):
    message = refusal(lambda: design(formula, BOOK))
    assert messages in message
    assert len(message) < 1000


@pytest.mark.parametrize(("formula", "messages"), HOSTILE, ids=name_of)
def test_hostile_formulas_read_and_cost_nothing(formula, messages):
    ledger = dp.Ledger(eps=2.0, delta=1e-5)

    def fit():
        dp.dp_pca(formula, Exploding(), codebook=BOOK, eps=1, delta=1e-6, ledger=ledger)

    message = refusal(fit)
    assert messages in message
    assert ledger.entries == ()


@pytest.mark.parametrize("formula", FINE, ids=name_of)
def test_odd_formulas_that_are_fine(formula):
    public = design(formula, BOOK)
    cells = {
        name: [values.lower, values.upper]
        if isinstance(values, dp.Numeric)
        else list(values.levels[:2])
        for name, values in public.codebook.items()
    }
    coded = row_coder(public)(cells)
    assert coded.shape == (len(public.names), 2)
    assert np.isfinite(coded).all()
