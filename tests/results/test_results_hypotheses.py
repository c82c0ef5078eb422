"""Tests of coefficients and of terms, against statsmodels' from the same numbers."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

import dpmodels as dp
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.formula.response import two_sided
from dpmodels.inference.sandwich import NormalLaw
from dpmodels.results.derived_table import Terms, anova, t_test, wald_test

BOOK = dp.codebook(y=(-20, 20), x=(0, 10), g=["a", "b", "c"], h=["u", "v"], yes=["n", "y"])
HUGE = {"codebook": BOOK, "eps": 1e13, "delta": 1e-6}


def made(rows=4_000):
    rng = np.random.default_rng(3)
    data = pd.DataFrame(
        {
            "x": rng.uniform(0, 10, rows),
            "g": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "h": rng.choice(["u", "v"], rows),
        }
    )
    mean = 0.2 * data["x"] + (data["g"] == "b") * (0.3 + 0.4 * (data["h"] == "v"))
    data["yes"] = np.where(rng.uniform(size=rows) < 1 / (1 + np.exp(1 - mean)), "y", "n")
    return data.assign(y=mean + rng.normal(size=rows), event=(data["yes"] == "y").astype(float))


ROWS = made()


def same_numbers(formula):
    """The law that statsmodels has of a linear model, and our terms of the same formula."""
    plain = smf.ols(formula, ROWS).fit()
    terms = two_sided(formula, BOOK).terms
    names = ("Intercept", *terms.names)
    law = NormalLaw(names, plain.params[list(names)].to_numpy(), cov(plain, names))
    return plain, law, Terms(terms, names)


def cov(plain, names):
    return plain.cov_params().loc[list(names), list(names)].to_numpy()


@pytest.mark.parametrize("formula", ["y ~ g * h + x", "y ~ x * g + h", "y ~ C(g, Sum) * h * x"])
def test_type_two_is_the_difference_of_sums_of_squares(formula):
    plain, law, terms = same_numbers(formula)
    reference = anova_lm(plain, typ=2).drop("Residual")
    table = anova(law, terms, 2).set_index("term").loc[reference.index]
    assert table["statistic"].to_numpy() == pytest.approx(
        reference["sum_sq"] / plain.scale, rel=1e-6
    )
    assert table["df"].tolist() == reference["df"].tolist()


def test_type_three_is_walds_of_the_coefficients_as_coded():
    formula = "y ~ C(g, Sum) * C(h, Sum) + x"
    plain, law, terms = same_numbers(formula)
    reference = anova_lm(plain, typ=3).drop(["Residual", "Intercept"])
    table = anova(law, terms, 3).set_index("term").loc[reference.index]
    assert table["statistic"].to_numpy() == pytest.approx(
        reference["sum_sq"] / plain.scale, rel=1e-6
    )


def test_a_term_is_named_as_written_in_any_order_or_by_its_variable():
    plain, law, terms = same_numbers("y ~ C(g) * h + x")
    for name in ("C(g):h", "h:C(g)", "h : C(g)"):
        reference = plain.wald_test(
            "C(g)[T.b]:h[T.v] = 0, C(g)[T.c]:h[T.v] = 0", use_f=False, scalar=True
        )
        wald = wald_test(law, terms, name)
        assert wald["statistic"] == pytest.approx(float(reference.statistic), rel=1e-6)
    assert wald_test(law, terms, "g").equals(wald_test(law, terms, "C(g)[T.b] = 0, C(g)[T.c] = 0"))
    t_tests = t_test(law, terms, "C(g)", 0.95)
    assert t_tests.index.tolist() == ["C(g)[T.b]", "C(g)[T.c]"]
    assert t_tests["std_error"].to_numpy() == pytest.approx(plain.bse[t_tests.index], rel=1e-6)
    # A coefficient of that name alone is what it was.
    assert wald_test(law, terms, "x").equals(wald_test(law, terms, "x = 0"))


def test_a_name_of_several_terms_is_refused_with_them():
    terms = Terms(two_sided("y ~ log(x + 1) + sqrt(x)", BOOK).terms, ("a", "b", "c"))
    with pytest.raises(ArgumentError, match=r"in several terms.*sqrt\(x\)"):
        terms.named("x")
    assert terms.named("log(x + 1)") == "log(x + 1)"
    assert terms.named("h") is None


def test_terms_of_parts_that_are_coded_apart_are_one():
    """patsy codes an interaction without its main effects in several parts of one term."""
    terms = Terms(two_sided("y ~ g:h", BOOK).terms, ())
    assert list(terms.columns) == ["g:h"]
    assert len(terms.columns["g:h"]) == 5


@pytest.fixture(scope="module")
def fits():
    with dp.simulation(seed=1):
        return {
            "lm": dp.dp_lm("y ~ g * h + x", ROWS, **HUGE),
            "glm": dp.dp_glm("yes ~ g * h + x", ROWS, **HUGE),
        }


@pytest.mark.expensive
def test_fits_test_terms_as_statsmodels_does_without_noise(fits):
    lm = anova_lm(smf.ols("y ~ g * h + x", ROWS).fit(), typ=2).drop("Residual")
    table = fits["lm"].anova().tidy().set_index("term").loc[lm.index]
    reference = lm["sum_sq"] / smf.ols("y ~ g * h + x", ROWS).fit().scale
    # Rows are read on a lattice.
    assert table["statistic"].to_numpy() == pytest.approx(reference, rel=1e-4)
    logit = smf.logit("event ~ g * h + x", ROWS).fit(disp=0, cov_type="HC0")
    table = fits["glm"].anova(typ=3).tidy().set_index("term")["statistic"]
    for term, names in fits["glm"].terms.items():
        text = ", ".join(f"{name} = 0" for name in names)
        reference = float(logit.wald_test(text, scalar=True, use_f=False).statistic)
        assert table[term] == pytest.approx(reference, rel=1e-4), term
        assert fits["glm"].wald_test(term)["statistic"] == table[term]
    single, t_test_of_one = fits["glm"].t_test("g[T.b] = 2 * x, x = 0.1"), logit.t_test("x = 0.1")
    assert single["statistic"].iloc[1] == pytest.approx(
        float(t_test_of_one.tvalue.item()), rel=1e-4
    )
    assert list(single) == list(fits["lm"].t_test("x"))


def test_the_table_says_the_type_and_what_is_lost(fits):
    text = fits["lm"].anova().summary().as_text()
    assert "Type II:" in text
    assert "SIMULATION" in text
    assert "Type III:" in str(fits["lm"].anova(3).summary())
    assert "<table" in fits["glm"].anova()._repr_html_()
    with pytest.raises(ArgumentError, match="typ"):
        fits["lm"].anova(1)
    rare = ROWS.assign(g=np.where(ROWS["g"] == "c", "b", ROWS["g"]))
    with dp.simulation(seed=4):
        lost = dp.dp_lm("y ~ g + x", rare, codebook=BOOK, eps=2.0, delta=1e-6).anova()
    table = lost.tidy().set_index("term")
    assert table["identified"].to_dict() == {"g": False, "x": True}
    assert table["statistic"].isna().to_dict() == {"g": True, "x": False}
    assert "not identified" in str(lost.summary())


@pytest.mark.product
def test_a_fit_without_a_law_refuses_with_the_reason():
    fit = dp.dp_glm("yes ~ x", ROWS, mechanism="output", **HUGE)
    for ask in (lambda: fit.t_test("x"), lambda: fit.wald_test("x"), fit.anova):
        with pytest.raises(NotAvailable, match="no intervals with known coverage"):
            ask()


def test_other_roads_to_a_fit_have_the_same_terms(tmp_path):
    with dp.simulation(seed=1):
        joint = dp.dp_moments("~ y + g + h + x", ROWS, **HUGE)
        none = dp.dp_lm("y ~ 1", ROWS, **HUGE)
        without = dp.dp_glm("yes ~ . - y - g - h", ROWS, **HUGE)
        bare = dp.dp_lm("y ~ g + x - 1", ROWS, **HUGE)
        weighted = dp.dp_lm("y ~ .", ROWS, weights="x", **HUGE)
    fit = joint.lm("y ~ g + h")
    fit.save(tmp_path / "fit.nc")
    again = dp.load(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(again.anova().tidy(), fit.anova().tidy())
    assert list(weighted.terms) == ["g", "h", "yes"]
    assert list(without.terms) == ["x"]
    assert bare.terms["g"] == ("g[a]", "g[b]", "g[c]")
    reference = (
        smf.ols("y ~ g + x - 1", ROWS)
        .fit()
        .wald_test("g[a] = 0, g[b] = 0, g[c] = 0", use_f=False, scalar=True)
    )
    assert bare.wald_test("g")["statistic"] == pytest.approx(float(reference.statistic), rel=1e-4)
    with pytest.raises(NotAvailable, match="no terms"):
        none.anova()
    with pytest.raises(NotAvailable, match="no terms to code rows by"):
        none.emmeans("g")


def test_several_constraints_may_be_a_list():
    _, law, terms = same_numbers("y ~ g + x")
    hypotheses = ["g", "x = 0.1"]
    table = t_test(law, terms, hypotheses, 0.95)
    parts = [t_test(law, terms, hypothesis, 0.95) for hypothesis in hypotheses]
    pd.testing.assert_frame_equal(table, pd.concat(parts))
    assert wald_test(law, terms, hypotheses)["df"] == 3
    with pytest.raises(ArgumentError, match="expected rows of 4 finite numbers"):
        t_test(law, terms, ["x", 7], 0.95)


def test_a_value_of_nothing_has_no_sign():
    _, law, terms = same_numbers("y ~ g + x")
    for hypothesis in ("x", "x = 0", "x = g[T.b]"):
        assert not np.signbit(t_test(law, terms, hypothesis, 0.95)["value"]).any()


@pytest.mark.parametrize("text", ["", "x =", "x == == 0"])
def test_constraints_that_cannot_be_read_say_what_to_write(text):
    _, law, terms = same_numbers("y ~ x")
    with pytest.raises(ArgumentError, match=r"cannot be read.*write 'a = 0' or 'a = b, c = 2'"):
        wald_test(law, terms, text)
