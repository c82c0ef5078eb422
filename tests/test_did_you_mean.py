"""Misspelled names are answered with the nearest right one, wherever they are written."""

import subprocess
import sys

import pytest

import dpmodels as dp
from dpmodels.errors import did_you_mean

BOOK = dp.codebook(age=(0, 100), income=(0, 1000), sex=["F", "M"])
ROWS = {"age": [20, 30] * 50, "income": [100, 200] * 50, "sex": ["F", "M"] * 50}


def session():
    return dp.session(ROWS, codebook=BOOK, eps=1)


MISSPELLED = {
    "verb": (lambda: dp.dp_lmm, "dp_lm"),
    "verb without its prefix": (lambda: dp.quantile, "dp_quantile"),
    "function": (lambda: dp.codebok, "codebook"),
    "column": (lambda: dp.dp_lm("income ~ Agee", ROWS, codebook=BOOK, eps=1), "age"),
    "column of the data": (
        lambda: dp.dp_mean("~ income", {"Incme": [2]}, codebook=BOOK, eps=1),
        "Incme",
    ),
    "level": (
        lambda: dp.dp_mean("~ age", ROWS, codebook=BOOK, eps=1, subset="sex == 'f'"),
        "F",
    ),
    "option": (lambda: dp.dp_lm("income ~ age", ROWS, codebook=BOOK, epsilon=1), "eps"),
    "value": (lambda: dp.dp_lm("income ~ age", ROWS, codebook=BOOK, eps=1, vcov="hc"), "HC"),
    "mechanism": (
        lambda: dp.dp_lm("income ~ age", ROWS, codebook=BOOK, eps=1, mechanism="moment"),
        "moments",
    ),
    "formula": (lambda: dp.dp_lm("income ~ sqr(age)", ROWS, codebook=BOOK, eps=1), "sqrt"),
    "neighbours": (
        lambda: dp.dp_mean("~ age", ROWS, codebook=BOOK, eps=1, adjacency="add_remove"),
        "add-remove",
    ),
    "protocol": (
        lambda: dp.dp_lm("~ age", sites={"a": ROWS}, codebook=BOOK, eps=1, protocol="pool"),
        "pooled",
    ),
    "setting": (lambda: dp.options(ledgr=None), "ledger"),
    "session": (lambda: dp.session(ROWS, codebok=BOOK, eps=1), "codebook"),
    "method": (lambda: session().tabel("~ sex"), "table"),
    "option of a method": (lambda: session().lm("income ~ age", epz=1), "eps"),
    "call": (lambda: dp.call("lmm", "income ~ age"), "lm"),
    "power": (lambda: dp.power("income ~ age", verb="lmm", codebook=BOOK, n=100, eps=1), "lm"),
    "effect": (
        lambda: dp.power("income ~ age", codebook=BOOK, n=100, eps=1, effect={"agee": 1.0}),
        "age",
    ),
    "weights": (
        lambda: dp.dp_lm("income ~ age", ROWS, codebook=BOOK, eps=1, weights="agee"),
        "age",
    ),
    "variable of an overview": (lambda: session().table_one("age + income", eps=1)["agee"], "age"),
    "marginal means": (lambda: session().lm("income ~ age", eps=1).emmeans("agee"), "age"),
    "structure": (
        lambda: dp.dp_synth("~ age + sex", ROWS, codebook=BOOK, eps=1, structure="age:sexx"),
        "sex",
    ),
    "plan": (lambda: dp.plan([], codebok=BOOK), "codebook"),
    "design": (lambda: dp.design(weight="w", bounds=(1, 50)), "weights"),
    "design of a codebook": (lambda: dp.codebook(y=(0, 1), design={"stratum": "h"}), "strata"),
    "identifier": (lambda: dp.Identifier(mising=["NA"]), "missing"),
    "number": (lambda: dp.Numeric(0, 1, labl="age"), "label"),
    "levels": (lambda: dp.Categorical(["F", "M"], mising=["NA"]), "missing"),
    "survey": (lambda: dp.dp_survey("~ sex", ROWS, devise={}), "device"),
}


@pytest.mark.parametrize(("misspelled", "right"), MISSPELLED.values(), ids=MISSPELLED)
def test_a_misspelled_name_is_answered_with_the_nearest(misspelled, right):
    with pytest.raises((dp.errors.DPModelsError, ValueError), match=rf"did you mean '{right}'"):
        misspelled()


@pytest.mark.product
def test_a_misspelled_command_is_answered_with_the_nearest():
    run = subprocess.run(
        [sys.executable, "-m", "dpmodels", "tabel"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "'tabel' is not known (did you mean 'table'" in run.stderr


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("lm", "dp_lm"),
        ("dp_logit", "dp_glm"),
        ("median", "dp_quantile"),
        ("dp_histogram", "dp_hist"),
    ],
)
def test_names_of_other_packages_are_answered_with_the_verb(name, right):
    with pytest.raises(dp.errors.NotAvailable, match=rf"did you mean '{right}'\?\); see dir"):
        getattr(dp, name)


def test_that_both_begin_with_dp_makes_names_no_more_alike():
    assert did_you_mean("dp_waves", ["dp_hist", "dp_lm"]) == ""


def test_names_that_resemble_nothing_are_answered_without_a_suggestion():
    assert did_you_mean("zzz", ["age", "sex"]) == did_you_mean(None, ["age"]) == ""
    assert did_you_mean("age", ["age"]) == ""
    with pytest.raises(dp.errors.ArgumentError, match="no parameter epsilon=: see"):
        dp.options(epsilon=1.0)
