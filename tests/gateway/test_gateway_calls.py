"""What an analyst may send, and what is refused before a worker sees it."""

import json
import random

import pytest

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, DPModelsError, LedgerError
from dpmodels.gateway.calls import FORBIDDEN, MOST_BYTES, PublicTable, call_of_sent, read_sent
from dpmodels.privacy import GaussianEvent, Ledger, adjacency

BOOK = Codebook.from_dict(
    {"age": {"range": [0, 100]}, "wage": {"range": [0, 10]}, "sex": {"levels": ["F", "M"]}}
)
TABLE = PublicTable("visits", BOOK, adjacency("replace"), 400)


def sent(verb="mean", formula="age ~ sex", **words):
    return read_sent(json.dumps({"verb": verb, "formula": formula, "options": words}).encode())


def priced(*args, **words):
    return TABLE.require_fit(call_of_sent(sent(*args, **words)), Ledger(eps=2.0))


def test_a_call_is_priced_on_simulated_rows():
    price = priced(eps=0.5)
    assert (price.cost, price.fits, price.columns) == ("eps = 0.5", True, 2)
    assert price.seconds(5, 20, 1_000_000) == 45
    with pytest.raises(LedgerError, match="more than the purse"):
        priced(eps=3.0)


def test_a_refusal_states_the_smallest_total_that_suffices():
    """Above the budget the total of charges in steps is a bound, here three times as large."""
    ledger = Ledger(eps=1.2, delta=1e-6, rule="steps")
    for _ in range(3):
        ledger.charge([GaussianEvent(14.0)], adjacency="replace")
    call = call_of_sent(sent("mean", "~ wage", eps=3.0, delta=0.0))
    with pytest.raises(LedgerError, match="total would be eps = ") as refused:
        TABLE.require_fit(call, ledger)
    total = float(str(refused.value).split("total would be eps = ")[1].split(",")[0])
    assert 3 < total < 5
    larger = Ledger(eps=total * 1.001, delta=1e-6, rule="steps")
    for _ in range(3):
        larger.charge([GaussianEvent(14.0)], adjacency="replace")
    assert TABLE.require_fit(call, larger).fits


@pytest.mark.parametrize("word", FORBIDDEN)
def test_a_forbidden_word_is_refused(word):
    with pytest.raises(ArgumentError, match=f"{word}= cannot be sent"):
        priced(eps=0.1, **{word: "x"})


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (("mean", "age ~ __import__('os').system('id')"), "not allowed|cannot be read"),
        (("__class__", "~ age"), "is not a verb"),
        (("tighten", "~ age"), "is not a verb"),
        (("save", "~ age"), "is not a verb"),
        (("survey", "~ age"), "is not a verb"),
        (("mean", "age ~ nothing"), "nothing"),
        (("lm", "age ~ " + "+".join(["wage"] * 4000)), "at most 4,000"),
        (("mean", "(" * 1500 + "age" + ")" * 1500), "."),
    ],
)
def test_a_hostile_formula_is_refused(request_, message):
    with pytest.raises((DPModelsError, RecursionError), match=message):
        priced(*request_, eps=0.1)


@pytest.mark.parametrize(
    "words",
    [
        {"mechanism": "none"},
        {"mechanism": "zero"},
        {"mechanism": "/etc/passwd"},
        {"mechanism": ["gaussian"]},
        {"eps": "nan"},
        {"eps": float("inf")},
        {"eps": -1},
        {"eps": [1]},
        {"eps": {}},
        {"rho": "x"},
        {"seed": 1},
        {"subset": "age > nothing"},
    ],
)
def test_a_hostile_word_is_refused(words):
    with pytest.raises(DPModelsError):
        priced("pca", "~ age + wage", **{"eps": 0.1, **words})


def test_a_list_is_limited():
    with pytest.raises(ArgumentError, match="at most 1,000"):
        priced("hist", "~ age", eps=0.1, breaks=list(range(2_000)))


@pytest.mark.parametrize("design", [True, "x", {"weights": "wage"}, {"psu": "sex"}, [], 1])
def test_a_design_is_the_codebooks(design):
    with pytest.raises(ArgumentError, match="design= cannot be sent to a gateway"):
        priced("mean", "age", eps=0.1, design=design)
    assert priced("mean", "age", eps=0.1, design=False).cost == "eps = 0.1"


def fuzzed(rng):
    """A body that is nearly a request, or hardly one."""
    body = json.dumps(
        {
            "verb": rng.choice(["mean", "lm", "hist", "", "eval", 3, None, ["mean"]]),
            "formula": rng.choice(["age", "age ~", "~~", "age ~ " + "(" * 50, "\u0000", "1/0", {}]),
            "options": rng.choice([{"eps": 0.1}, {"eps": None}, {"x": {}}, [], "a", {"": 1}, None]),
        }
    ).encode()
    kind = rng.randrange(4)
    if kind == 1:
        body = body[: rng.randrange(len(body))]
    if kind == 2:
        place = rng.randrange(len(body))
        body = body[:place] + rng.randbytes(3) + body[place + 3 :]
    if kind == 3:
        body = rng.choice([b"", b"[" * 9_000, b'{"verb": 1e999}', b"9" * 5_000, b"null", b"{}"])
    return body


def test_fuzzed_bodies_are_refused_with_errors_of_the_package():
    rng, refused = random.Random(1), 0
    for _ in range(300):
        body = fuzzed(rng)
        try:
            TABLE.require_fit(call_of_sent(read_sent(body)), Ledger(eps=2.0))
        except DPModelsError:
            refused += 1
    assert refused > 250
    with pytest.raises(ArgumentError, match="are read"):
        read_sent(b" " * (MOST_BYTES + 1))


WIDE = {
    "pca": ("~ (. - y1)**2", 60),
    "lm": ("y0 ~ y0:(.) + (.)**2", 60),
    "fdr": (".**2 ~ y0", 60),
    "glm": ("y0 ~ C(g):(y1 + y2)", 0),
    "cov": ("~ .", 1_001),
}


@pytest.mark.parametrize("verb", WIDE)
def test_formulas_that_code_to_very_many_columns_are_refused_before_they_are_priced(verb):
    formula, n_numbers = WIDE[verb]
    book = {f"y{i}": {"range": [0, 1]} for i in range(n_numbers or 3)}
    book |= {} if n_numbers else {"g": {"levels": list(range(600))}}
    table = PublicTable("wide", Codebook.from_dict(book), adjacency("replace"), 400)
    ledger = Ledger(eps=2.0)
    call = call_of_sent(sent(verb, formula, eps=0.1))
    for ask in (lambda: table.require_fit(call, ledger), lambda: table.plan([call], ledger)):
        with pytest.raises(ArgumentError, match=r"'.*' codes to 1,\d\d\d columns; .* most 1,000"):
            ask()
    assert table.require_fit(call_of_sent(sent("mean", "~ y0", eps=0.1)), ledger).columns == 1


def test_the_time_limit_counts_the_columns_that_a_formula_codes_to():
    assert priced("lm", "wage ~ age + sex + age:sex", eps=0.5).columns == 4
