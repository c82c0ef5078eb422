"""Forms: the fields of each verb, and what is entered as a request."""

import json

import pytest
from folded import each

from dpmodels.errors import ArgumentError
from dpmodels.gateway.calls import FORBIDDEN, call_of_sent, read_sent
from dpmodels.gateway.pages import assumed_n, option_fields, request_of
from dpmodels.models.release import all_verbs


@each("verb", all_verbs())
def test_a_verb_has_fields_for_what_an_analyst_may_set(verb):
    fields = {field.name: field for field in option_fields({"verb": verb})}
    assert set(fields) >= set(all_verbs()[verb].options) - set(FORBIDDEN)
    assert not set(fields) & set(FORBIDDEN)
    assert all(field.hint for field in fields.values())
    for field in fields.values():
        for choice in field.choices:
            sent = request_of({"verb": verb, "formula": "~ x", field.name: choice})
            assert set(call_of_sent(read_sent(sent)).options) == {field.name}


def words(verb, **entered):
    return json.loads(request_of({"verb": verb, "formula": "~ x", **entered}))["options"]


def test_values_have_the_types_that_a_program_would_send():
    assert words("mean", eps="1", delta="1e-6") == {"eps": 1.0, "delta": 1e-6}
    assert isinstance(words("mean", eps="1")["eps"], float)
    assert words("mean", eps=" 1/5 ", subset="", mechanism="auto") == {
        "eps": "1/5",
        "mechanism": "auto",
    }
    assert words("pca", center="no", scale="none", ncomp="2", inference="yes") == {
        "center": False,
        "scale": None,
        "ncomp": 2,
        "inference": True,
    }
    assert words("hist", breaks="10") == {"breaks": 10}
    assert words("quantile", probs="0.1,0.9", rho="0.1") == {"probs": [0.1, 0.9], "rho": 0.1}
    assert words("series", time="day", by="7") == {"time": "day", "by": 7}
    assert words("mean", ncomp="2", person="id", data="/etc/passwd") == {}


def test_a_design_can_be_left_out_but_not_declared():
    (design,) = (field for field in option_fields({"verb": "mean"}) if field.name == "design")
    assert design.choices == ("no",)
    assert words("mean", design="no") == {"design": False}
    assert words("mean", design="") == {}


def test_a_value_of_another_type_is_refused_by_name():
    with pytest.raises(ArgumentError, match="ncomp: 'two': expected INT"):
        words("pca", ncomp="two")
    with pytest.raises(ArgumentError, match="delta"):
        words("mean", delta="small")
    for wrong in ("few", "0", "1e3", "-5"):
        with pytest.raises(ArgumentError):
            assumed_n({"n": wrong})
    assert (assumed_n({"n": "20,190"}), assumed_n({})) == (20_190, None)


def test_options_of_another_verb_are_not_kept():
    form = {
        "verb": "survfit",
        "shown": "hist",
        "breaks": "5",
        "mechanism": "gaussian",
        "subset": "x > 1",
    }
    values = {field.name: field.value for field in option_fields(form)}
    assert (values["breaks"], values["subset"]) == ("", "x > 1")
