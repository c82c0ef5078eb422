"""User-supplied mechanisms in the verbs of their family."""

import re
from pathlib import Path

import numpy as np
import pytest
from user_mechanisms import (
    Equal,
    EqualLaplace,
    FailingPlan,
    Lopsided,
    Negative,
    NoPlan,
    Quotes,
    TooLittle,
    registered,
)

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, MechanismError
from dpmodels.mechanisms import Facts, Gauss, Iterative, user_supplied
from dpmodels.mechanisms.user_supplied import UserSupplied
from dpmodels.privacy import ApproxDP, GaussianEvent, PureDP, adjacency, gaussian_multiplier

BOOK = dp.codebook(a=(0, 1), b=(0, 1), c=(0, 1))
RNG = np.random.default_rng(3)
ROWS = {name: RNG.uniform(size=4_000) for name in "abc"}
ROWS["c"] = np.clip((ROWS["a"] + ROWS["c"]) / 2, 0, 1)
BUDGET = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6}
VERBS = [
    (dp.dp_pca, "~ a + b + c"),
    (dp.dp_cov, "~ a + b + c"),
    (dp.dp_moments, "~ a + b + c"),
    (dp.dp_cca, "a + b ~ c"),
    (dp.dp_lm, "c ~ a + b"),
]


@pytest.fixture(autouse=True)
def known():
    with registered(Equal, EqualLaplace):
        yield


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("options", ["equal", Equal, Equal(2.0)], ids=["name", "class", "instance"])
@pytest.mark.parametrize(("verb", "formula"), VERBS)
def test_the_verbs_of_moments_take_it(verb, formula, options, relation):
    ledger = dp.Ledger(eps=1.0, delta=1e-6, adjacency=relation)
    words = {"adjacency": relation, "mechanism": options, "ledger": ledger}
    with dp.options(clipping=False):
        fit = verb(formula, ROWS, **BUDGET, **words)
    assert fit.release.info.name == "equal"
    assert fit.release.events == (GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6))),)
    (entry,) = ledger.entries
    assert entry.events == fit.release.events
    assert ledger.register()["mechanism"].tolist() == ["equal"]
    assert "equal (user-supplied mechanism, not checked)" in fit.summary().as_markdown()
    assert "exact" not in fit.release.info.numerics


@pytest.mark.parametrize("verb", [dp.dp_pca, dp.dp_cov, dp.dp_lm])
def test_laplace_noise_keeps_a_pure_guarantee(verb):
    formula = dict(VERBS)[verb]
    fit = verb(formula, ROWS, codebook=BOOK, eps=20.0, mechanism="equal_laplace")
    assert fit.release.guarantee == PureDP(20.0)
    with pytest.raises(BudgetError):
        verb(formula, ROWS, codebook=BOOK, eps=1.0, mechanism="equal")


@pytest.mark.parametrize("verb", [dp.dp_moments, dp.dp_cca])
def test_verbs_that_need_gaussian_noise_refuse_others(verb):
    for mechanism in ("equal_laplace", Iterative()):
        with pytest.raises(ArgumentError, match="Gaussian noise of a known distribution"):
            verb(dict(VERBS)[verb], ROWS, **BUDGET, mechanism=mechanism)
    with pytest.raises(ArgumentError, match="expected one of 'auto', 'gauss'"):
        verb(dict(VERBS)[verb], ROWS, **BUDGET, mechanism="laplace")


@pytest.mark.parametrize("vcov", ["iid", "HC"])
def test_coefficients_are_near_those_without_noise(vcov):
    exact = np.linalg.lstsq(
        np.column_stack([np.ones(4_000), ROWS["a"], ROWS["b"]]), ROWS["c"], rcond=None
    )[0]
    with dp.simulation(seed=1):
        fit = dp.dp_lm(
            "c ~ a + b", ROWS, codebook=BOOK, budget=dp.ZCDP(50), mechanism="equal", vcov=vcov
        )
    assert np.allclose(fit.params, exact, atol=0.02)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("kind", [Equal, EqualLaplace])
def test_the_noise_is_that_of_the_plan(kind, centred, relation):
    facts = Facts(3, adjacency(relation), centred=centred)
    strategy = UserSupplied(kind())
    plan = strategy.plan(facts, ApproxDP(1.0, 1e-6))
    plan_used = kind().plan(facts, ApproxDP(1.0, 1e-6))
    noise = strategy.planned(plan)
    assert noise[0, 0] == pytest.approx(plan_used.count, rel=1e-12)
    assert noise[0, 1] == noise[3, 0] == pytest.approx(plan_used.mean * centred, rel=1e-12)
    assert noise[1, 1] == noise[3, 3] == pytest.approx(plan_used.diagonal, rel=1e-12)
    assert noise[1, 2] == noise[3, 2] == pytest.approx(plan_used.off, rel=1e-12)


def test_auto_never_takes_it():
    fit = dp.dp_cov("~ a + b", ROWS, **BUDGET)
    assert fit.release.info.name != "equal"
    with pytest.raises(ArgumentError, match="not known here"):
        dp.dp_table("~ cut(a, [0, 0.5, 1])", ROWS, **BUDGET, mechanism="equal")


def test_a_cross_check_with_gauss_of_the_noise_that_is_reported():
    user_fit, gauss = (
        dp.dp_cov("~ a + b", ROWS, **BUDGET, mechanism=mechanism)
        for mechanism in ("equal", "gauss")
    )
    assert 1 < user_fit.release.noise.off / gauss.release.noise.off < 2


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (TooLittle, r"too little noise for .*; multiply it by 2\.?\d* or more"),
        (NoPlan, "returned NoneType; expected"),
        (Negative, "gives diagonal=-1.0; expected a positive number"),
        (FailingPlan, "raised ZeroDivisionError; nothing was charged"),
    ],
)
def test_a_bad_plan_is_refused_before_a_row_is_read_and_charged(kind, words):
    class Unreadable:
        def __float__(self):
            pytest.fail("a row was read")

    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    rows = {name: np.array([Unreadable()] * 50, dtype=object) for name in "ab"}
    with registered(kind), pytest.raises(ArgumentError, match=words):
        dp.dp_cov("~ a + b", rows, **BUDGET, mechanism=kind.name, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize("kind", [Quotes, Lopsided])
@pytest.mark.parametrize(("verb", "formula"), VERBS)
def test_a_failing_release_quotes_no_value(kind, verb, formula):
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    with registered(kind), pytest.raises(MechanismError) as raised:
        verb(formula, ROWS, **BUDGET, mechanism=kind.name, ledger=ledger)
    assert "." not in str(raised.value).replace("dp.mechanisms.", "")
    assert not any(character.isdigit() for character in str(raised.value))
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (type("Mine", (Equal,), {"name": "gauss"}), "the name of a built-in mechanism"),
        (type("Mine", (Equal,), {"name": "geometric"}), "the name of a built-in mechanism"),
        (type("Mine", (Equal,), {"name": "auto"}), "the name of a built-in mechanism"),
        (type("Mine", (Equal,), {"name": "wishart"}), "not offered.*retracted"),
        (type("Mine", (Equal,), {"name": "equal"}), "is taken by the registered class Equal"),
        (type("Mine", (Equal,), {"name": "my mechanism"}), "expected an identifier"),
        (type("Mine", (Equal,), {"name": "class"}), "expected an identifier"),
        (type("Mine", (Equal,), {"name": 3}), "expected an identifier"),
        (type("Mine", (Equal,), {"law": "exact"}), "expected the law of its noise"),
        (type("Mine", (Equal,), {"name": "mine", "numerics": "exact"}), "leave out numerics"),
        (type("Mine", (Equal,), {"name": "mine", "info": Gauss.info}), "leave out info"),
        (
            type("Mine", (Equal,), {"name": "mine", "__init__": lambda self, a: None}),
            "a default for every option",
        ),
        (type("Mine", (Equal,), {"name": "mine", "release": lambda self: 1}), "define plan"),
        (type("Mine", (), {"name": "mine", "law": "gaussian"}), "expected a subclass of"),
        (Equal(), "expected the class, Equal"),
        ("equal", "expected a subclass of"),
    ],
)
def test_what_is_not_a_mechanism_is_not_registered(kind, words):
    with pytest.raises(ArgumentError, match=words):
        dp.mechanisms.register(kind)


def test_a_class_that_is_not_registered_is_refused():
    ledger = dp.Ledger(eps=1.0, delta=1e-6)
    for mechanism in (TooLittle, TooLittle()):
        with pytest.raises(ArgumentError, match=r"dp\.mechanisms\.register\(TooLittle\) first"):
            dp.dp_cov("~ a + b", ROWS, **BUDGET, mechanism=mechanism, ledger=ledger)
    assert ledger.entries == ()


def test_a_class_defined_again_replaces_the_one_before():
    again = type("Equal", (Equal,), {"__module__": Equal.__module__})
    again.__qualname__ = Equal.__qualname__
    assert dp.mechanisms.register(again) is again
    with pytest.raises(ArgumentError, match="not registered"):
        dp.dp_cov("~ a + b", ROWS, **BUDGET, mechanism=Equal)


def test_a_saved_fit_is_loaded_where_the_mechanism_is_not_known(tmp_path):
    fits = [verb(formula, ROWS, **BUDGET, mechanism="equal") for verb, formula in VERBS]
    with registered():
        user_supplied._REGISTERED.clear()
        for place, fit in enumerate(fits):
            fit.save(tmp_path / f"{place}.nc")
            again = dp.load(tmp_path / f"{place}.nc")
            assert str(again.summary()) == str(fit.summary())
            assert "user-supplied mechanism, not checked" in again.summary().as_markdown()


def test_the_sites_of_a_trusted_aggregator_take_it_and_others_do_not():
    halves = {
        "one": {name: column[:900].copy() for name, column in ROWS.items()},
        "two": {name: column[900:].copy() for name, column in ROWS.items()},
    }
    fit = dp.dp_cov("~ a + b", sites=halves, protocol="pooled", **BUDGET, mechanism="equal")
    assert fit.release.info.name == "equal"
    with pytest.raises(ArgumentError, match="protocol='full'"):
        dp.dp_cov("~ a + b", sites=halves, protocol="full", **BUDGET, mechanism="equal")


def test_persons_are_protected_by_more_noise():
    rows = {**ROWS, "id": np.arange(4_000) // 2}
    book = BOOK | dp.codebook(person="id")
    words = {"eps": 1.0, "delta": 1e-6, "mechanism": "equal"}
    fit = dp.dp_cov("~ a + b", rows, codebook=book, rows=2, **words)
    single = dp.dp_cov("~ a + b", ROWS, codebook=BOOK, **words)
    assert fit.release.noise.off > 1.9 * single.release.noise.off / 2


def test_a_subclass_of_a_mechanism_of_the_package_states_no_exactness():
    class Mine(Gauss):
        pass

    fit = dp.dp_cov("~ a + b", ROWS, **BUDGET, mechanism=Mine())
    assert "gauss (user-supplied mechanism, not checked)" in fit.summary().as_markdown()


@pytest.mark.product
@pytest.mark.parametrize("mechanism", ["equal", Equal], ids=["name", "class"])
def test_mechanisms_are_compared_with_it(mechanism):
    words = {"codebook": BOOK, "n": 5_000, "eps": 1.0, "delta": 1e-6, "repeats": 1}
    for formula, plain in (("~ a + b + c", "gauss"), ("c ~ a + b", "moments")):
        compared = dp.compare_mechanisms(formula, mechanisms=[plain, mechanism], **words)
        lines = compared.table.set_index("mechanism")
        assert set(lines.index) == {plain, "equal"}
        assert lines.loc["equal", "numerics"] == "user-supplied mechanism, not checked"
        assert lines.loc["equal", "fits"]
        assert "equal" in str(compared.summary())
        usual = dp.compare_mechanisms(formula, mechanisms=None, **words)
        assert "equal" not in usual.table["mechanism"].tolist()
    with pytest.raises(ArgumentError, match="is not known; expected names out of"):
        dp.compare_mechanisms("I(c > 0.5) ~ a", mechanisms=[mechanism], family="binomial", **words)


def test_a_comparison_says_why_it_does_not_fit_a_budget():
    compared = dp.compare_mechanisms(
        "~ a + b", codebook=BOOK, n=5_000, eps=1.0, repeats=1, mechanisms=["laplace", "equal"]
    )
    lines = compared.table.set_index("mechanism")
    assert not lines.loc["equal", "fits"]


@pytest.mark.product
@pytest.mark.parametrize(
    "mechanism", ["equal", Equal, Equal(2.0)], ids=["name", "class", "instance"]
)
def test_power_is_that_of_its_noise(mechanism):
    words = {
        "codebook": BOOK,
        "n": 2_000,
        "eps": 1.0,
        "delta": 1e-6,
        "effect": {"a": 0.2},
        "verb": "lm",
    }
    user_power = dp.power("c ~ a + b", mechanism=mechanism, **words)
    gauss = dp.power("c ~ a + b", mechanism="moments", **words)
    assert "equal" in str(user_power.summary())
    assert (user_power.table["noise_sd"] > gauss.table["noise_sd"]).all()


@pytest.mark.product
def test_the_example_of_the_guide_runs(capsys):
    text = Path(__file__).parents[2].joinpath("CONTRIBUTING.md").read_text("utf-8")
    section = text.split("## Use a mechanism of your own")[1]
    example = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)[0]
    names = {"__name__": "example"}
    exec(compile(example, "CONTRIBUTING.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "Check of the user-supplied mechanism 'spherical': passed" in printed
    assert "spherical (user-supplied" in printed
    assert names["fit"].release.info.numerics == "user-supplied mechanism, checked"
