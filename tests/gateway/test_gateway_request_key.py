"""Which requests are the same, and so are answered once and charged once."""

import json

import pytest
from test_gateway_calls import sent

import dpmodels as dp
from dpmodels.gateway.calls import call_of_sent, read_sent, request_key
from dpmodels.gateway.client import _sent
from dpmodels.models.release import all_verbs
from dpmodels.privacy import ZCDP, ApproxDP, PureDP

PURE, APPROX = PureDP(2.0), ApproxDP(2.0, 1e-6)


def key(verb="mean", formula="age ~ sex", total=PURE, purse="ann", **words):
    return request_key(call_of_sent(sent(verb, formula, **words)), "visits", purse, total)


@pytest.mark.parametrize("written", ["1", "1.0", "1e0", "10e-1", "1.000"])
def test_notations_of_a_number_are_one_request(written):
    body = f'{{"options": {{"eps": {written}}}, "formula": "age ~ sex", "verb": "mean"}}'
    call = call_of_sent(read_sent(body.encode()))
    assert request_key(call, "visits", "ann", PURE) == key(eps=1)


ALIKE = [
    ({"formula": " age~sex "}, {}),
    ({"formula": "age\t~\n  sex"}, {}),
    (
        {"verb": "lm", "formula": "age~(wage+sex)**2"},
        {"verb": "lm", "formula": "age ~ ( wage + sex ) ** 2"},
    ),
    ({"subset": "age>=25"}, {"subset": "age  >=  25"}),
    ({"mechanism": "auto", "subset": None, "share": None}, {}),
    ({"delta": 0}, {"delta": 0.0}),
    ({"delta": 0.0}, {}),
    ({"total": APPROX, "delta": 1e-6}, {"total": APPROX}),
    ({"eps": "1/5"}, {"eps": None, "share": 0.2}),
    ({"eps": " 2/10 "}, {"eps": None, "share": "1/5"}),
    ({"eps": None, "rho": 1, "total": ZCDP(2.0)}, {"eps": None, "rho": 1.0, "total": ZCDP(2.0)}),
    (
        {"verb": "hist", "formula": "age", "breaks": [0, 50, 100]},
        {"verb": "hist", "formula": "age", "breaks": [0.0, 5e1, 100.0]},
    ),
    (
        {"verb": "quantile", "formula": "age", "probs": [0.25, 0.5, 0.75], "level": 0.95},
        {"verb": "quantile", "formula": "age"},
    ),
    (
        {"verb": "pca", "formula": "~ .", "center": True, "inference": False},
        {"verb": "pca", "formula": "~."},
    ),
]

DIFFERENT = [
    ({"formula": "age ~ wage"}, {}),
    ({"purse": "bob"}, {}),
    ({"eps": 0.1}, {"eps": 0.1000001}),
    ({"verb": "var"}, {}),
    ({"subset": "age > 1"}, {"subset": "age > 10"}),
    ({"subset": "sex == 'F  M'"}, {"subset": "sex == 'F M'"}),
    ({"subset": 'sex == """F"  M"""'}, {"subset": 'sex == """F" M"""'}),
    ({"formula": "age # ~ wage"}, {"formula": "age #~ wage"}),
    ({"formula": "age ~ `a  b`"}, {"formula": "age ~ `a b`"}),
    ({"formula": "age ~ a b"}, {"formula": "age ~ ab"}),
    ({"formula": "age ~ a * * b"}, {"formula": "age ~ a ** b"}),
    ({"total": APPROX, "delta": 1e-7}, {"total": APPROX}),
    ({"total": APPROX, "delta": 0}, {"total": APPROX}),
    ({"eps": "1/5"}, {"eps": "1/4"}),
    ({"eps": "1/1"}, {"eps": 1}),
    ({"design": False}, {}),
    ({"verb": "pca", "formula": "~ .", "denoise": None}, {"verb": "pca", "formula": "~ ."}),
    ({"verb": "pca", "formula": "~ .", "inference": True}, {"verb": "pca", "formula": "~ ."}),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_the_same_request_in_other_words_has_the_same_key(first, second):
    assert key(**{"eps": 1.0, **first}) == key(**{"eps": 1.0, **second})


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_another_request_has_another_key(first, second):
    assert key(**{"eps": 1.0, **first}) != key(**{"eps": 1.0, **second})


def test_every_default_of_every_verb_may_be_spelled_out():
    for name, verb in all_verbs().items():
        required = {"time": "month"} if name == "series" else {}
        options = {**verb.options, **required, "mechanism": "auto", "subset": None}
        plain = json.loads(json.dumps(options))
        assert key(name, "age", eps=1, **plain) == key(name, "age", eps=1, **required), name


def test_a_client_sends_what_was_written():
    call = dp.call.pca("~ .", budget=dp.ZCDP(0.5), denoise=None, center=True, ncomp=None)
    assert _sent(call)["options"] == {"rho": 0.5, "denoise": None, "center": True}
    cuts = {"age": (0, 50, 100)}
    assert _sent(dp.call.synth("~ age", eps=1.0, cuts=cuts))["options"] == {
        "eps": 1.0,
        "cuts": cuts,
    }
