"""A pure guarantee where noise is Gaussian: what is refused says what works, and it does."""

import re

import numpy as np
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.errors import BudgetError, DPModelsError
from dpmodels.sites import PROTOCOLS

BOOK = dp.codebook(age=(0, 100), wage=(0, 9), sex=["F", "M"])
ROWS = {"age": np.full(60, 30.0), "wage": np.arange(60) % 9.0, "sex": ["F", "M"] * 30}
FORMS = {form.verb.name: form for form in forms("sites").values()}
ADDING = [name for name, kind in PROTOCOLS.items() if kind().passes_noise]
# What a message may tell to write, as the words of the next call.
ADVICE = {
    "delta=1e-6": {"delta": 1e-6},
    "budget=dp.ZCDP(rho)": {"eps": None, "budget": dp.ZCDP(0.1)},
    "protocol='pooled'": {"protocol": "pooled"},
    "mechanism='auto'": {"mechanism": "auto"},
}


def ask(verb, **words):
    return FORMS[verb].function(FORMS[verb].formula, **({"codebook": BOOK, "eps": 1.0} | words))


def advised(message):
    """The words that a message tells to write; it knows no others."""
    matches = re.findall(r"\w+=(?:dp\.)?['\w.-]+(?:\(\w+\))?", message.partition("write")[2])
    return [ADVICE[matche] for matche in matches]


def refused(verb, **words):
    with pytest.raises(BudgetError, match="Gaussian") as raised:
        ask(verb, **words)
    return advised(str(raised.value))


@pytest.mark.parametrize("protocol", ADDING)
@pytest.mark.parametrize("verb", FORMS)
def test_what_a_protocol_advises_works(verb, protocol):
    words = {"sites": dict.fromkeys("ABC", ROWS), "protocol": protocol}
    try:
        ask(verb, **words, delta=1e-6)
    except DPModelsError:
        pytest.skip("the protocol is not for this verb, whatever the guarantee")
    message = refused(verb, **words)
    assert len(message) >= 2
    for extra in message:
        assert ask(verb, **(words | extra)).release.rows == 180


@pytest.mark.parametrize("verb", FORMS)
def test_what_a_mechanism_advises_works(verb):
    words = {"data": ROWS, **FORMS[verb].verb.normal}
    message = refused(verb, **words)
    assert len(message) >= 2
    for extra in message:
        assert ask(verb, **(words | extra)).release.rows == 60
