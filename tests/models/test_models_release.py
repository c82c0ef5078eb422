"""One crossing for every verb: sites, a formula that is parsed once, and who may watch."""

import inspect
from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.formula import coding, response, sides
from dpmodels.models.site_files import sent_verbs
from dpmodels.sites import PROTOCOLS, SENT, Parties, Witness
from tests.mines import Mine

BOOK = dp.codebook(a=(-1, 1), b=(0, 4), y=["no", "yes"], c=(0, 20))
ASKED = {
    "dp_pca": ("~ a + b", {"delta": 1e-6}),
    "dp_lm": ("a ~ b + y", {"delta": 1e-6}),
    "dp_glm": ("y ~ a + b", {"delta": 1e-6, "mechanism": "gradients"}),
    "dp_svm": ("y ~ a + b", {}),
    "dp_mean": ("a ~ y", {}),
    "dp_ttest": ("a ~ y", {}),
    "dp_quantile": ("a ~ y", {}),
}
ALONE = ("dp_glm", "dp_svm", "dp_quantile")
ROUNDS = {(verb, "secure_sum") for verb in ALONE}  # Taken round by round


def rows(count=60, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "a": rng.uniform(-1, 1, count),
        "b": rng.uniform(0, 4, count),
        "y": rng.choice(["no", "yes"], count),
        "c": rng.poisson(3, count).astype(float),
    }


MINES = {name: Mine() for name in BOOK}


def ask(verb, sites, protocol="pooled", **words):
    formula, options = ASKED[verb]
    arguments = {"codebook": BOOK, "eps": 1.0, **options, **words}
    return getattr(dp, verb)(formula, sites=sites, protocol=protocol, **arguments)


@pytest.mark.parametrize("verb", ASKED)
def test_a_formula_is_parsed_once_however_many_sites(verb, monkeypatch):
    parsed = []
    for module in (coding, response, sides):
        original = module.parsed_formula

        def counted(*inputs, original=original):
            parsed.append(inputs)
            return original(*inputs)

        monkeypatch.setattr(module, "parsed_formula", counted)
    ask(verb, {f"site {i}": rows(seed=i) for i in range(5)})
    assert len(parsed) == 1


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("verb", "protocol"), [pair for pair in product(ALONE, SENT) if pair not in ROUNDS]
)
def test_what_sites_cannot_add_is_refused_by_name_before_a_row_is_read(verb, protocol):
    ledger, words = dp.Ledger(10, 1e-5), {"delta": 1e-6}
    with pytest.raises(ArgumentError, match=f"'{protocol}'.*'pooled'"):
        ask(verb, {name: dict(MINES) for name in "nsw"}, protocol, ledger=ledger, **words)
    assert ledger.entries == ()


@pytest.mark.guarding
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_named_mechanism_that_does_not_add_is_refused_too(mechanism):
    with pytest.raises(ArgumentError, match="dp_glm"):
        ask("dp_glm", {name: dict(MINES) for name in "nsw"}, "full", mechanism=mechanism)


@pytest.mark.parametrize("verb", ["dp_glm", "dp_svm"])
def test_every_site_has_to_be_readable_again(verb):
    ledger = dp.Ledger(10, 1e-5)
    with pytest.raises(FrameError, match="several times"):
        ask(verb, {"n": MINES, "s": iter([MINES])}, ledger=ledger)
    assert ledger.entries == ()


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_sums_of_gradients_at_sites_are_those_of_one_table(family, monkeypatch):
    """Bit for bit, round by round, before there is any noise."""
    from dpmodels.mechanisms import gradient_noise

    sums, original = [], gradient_noise.add_noise

    def kept(exact, *rest):
        sums[-1].append(exact.tolist())
        return original(exact, *rest)

    monkeypatch.setattr(gradient_noise, "add_noise", kept)
    data = rows(80)
    ends = {"n": slice(0, 3), "s": slice(3, 50), "w": slice(50, 80)}
    divided = {name: {k: v[part] for k, v in data.items()} for name, part in ends.items()}
    words = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "family": family}
    words["mechanism"] = "gradients"
    formula = "y ~ a + b" if family == "binomial" else "c ~ a + b"
    for source in ({"data": data}, {"sites": divided, "protocol": "pooled"}):
        sums.append([])
        with dp.simulation(seed=3):
            dp.dp_glm(formula, **source, **words)
    assert len(sums[0]) > 10
    assert sums[0] == sums[1]


@pytest.mark.parametrize("mechanism", ["auto", "objective", "output", "gradients"])
def test_what_is_not_exact_over_sites_is_said(mechanism):
    sites = {"n": rows(seed=1), "s": rows(seed=2)}
    arguments = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "mechanism": mechanism}
    exact = mechanism == "gradients"
    for protocol in ("pooled", "local"):
        fit = dp.dp_glm("y ~ a + b", sites=sites, protocol=protocol, **arguments)
        text = " ".join(str(fit.summary(notes="all")).split())
        assert fit.release.info.numerics == ("exact lattice" if exact else "idealised")
        assert f"({fit.release.info.numerics})" in text
        # Of a mechanism that the user named nothing is said to be chosen.
        assert ("not exactly" in text) == (mechanism == "auto" and protocol == "pooled")
        assert "sees exact" not in text


def test_a_result_of_sites_is_saved_with_them(tmp_path):
    for verb in ALONE:
        fit = ask(verb, {"n": rows(seed=1), "s": rows(seed=2)})
        fit.save(tmp_path / verb)
        again = dp.load(tmp_path / verb)
        assert again.release.shared == fit.release.shared
        assert again.release.shared.sites == ("n", "s")
        assert "protocol pooled" in str(again.summary())


def test_a_witness_sees_each_step_and_changes_none():
    steps = []

    class Told(Witness):
        def planned(self, spec, choice, private, events):
            steps.append(("planned", len(ledger.entries)))
            return "something else"

        def measured(self, joint, statistics):
            steps.append(("measured", len(ledger.entries)))
            return None

    ledger = dp.Ledger(10, 1e-5)
    words = {"codebook": BOOK, "eps": 1.0, "ledger": ledger}
    parties = Parties(("",), (rows(),), witness=Told())
    with dp.simulation(seed=1):
        watched = dp.dp_mean("a ~ y", parties, **words)
    with dp.simulation(seed=1):
        alone = dp.dp_mean("a ~ y", rows(), **words)
    # Nothing is charged at the first, and all of it at the second.
    assert steps == [("planned", 0), ("measured", 1)]
    assert (watched.release.values == alone.release.values).all()
    assert len(ledger.entries) == 2


def test_words_of_sites_are_those_of_the_verbs_with_their_defaults():
    for name, verb in sent_verbs().items():
        parameters = inspect.signature(getattr(dp, f"dp_{name}")).parameters
        assert {word: parameters[word].default for word in verb.options} == verb.options


def test_a_combination_reads_no_rows_and_makes_no_release_of_none(tmp_path, monkeypatch):
    agreed = {"codebook": BOOK, "eps": 1.0, "delta": 1e-6, "session": "s", "protocol": "full"}
    files = [tmp_path / f"{site}.json" for site in "AB"]
    from dpmodels.mechanisms import Gauss

    def never(*_):
        raise AssertionError("a release was made")

    monkeypatch.setattr(Gauss, "release", never)
    for file in files:
        dp.site_release("~ a + b", rows(), file, site=file.stem, **agreed)
    monkeypatch.setattr(Parties, "bind", never)
    fit = dp.combine(files)
    assert fit.nobs == 120
    assert fit.call.ledger == "kept by each site"


def test_no_protocol_poses_as_another():
    for name, kind in PROTOCOLS.items():
        assert kind.trust.name == name
        assert kind.passes_noise == (name in SENT)
        assert isinstance(kind.lawful, bool)
