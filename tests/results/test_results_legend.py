"""Labels and units of the codebook in tidy tables and in every printed report."""

import numpy as np
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.results.estimate_table import MOST, legend, words

ROWS = {
    "age": np.linspace(0, 10, 400),
    "wage": np.linspace(-1, 1, 400) ** 2,
    "sex": [0, 1] * 200,
    "net pay": np.linspace(0, 1, 400),
}
BARE = {"age": (0, 10), "wage": (-1, 1), "sex": [0, 1], "net pay": (0, 1)}
BOOK = dp.codebook(
    BARE
    | {
        "age": dp.Numeric(0, 10, label="Length of arm", unit="cm"),
        "sex": dp.Categorical([0, 1], label="Left-handed"),
        "net pay": dp.Numeric(0, 1, label="Pay after tax", unit="€ & $"),
    }
)
WORDS = {"eps": 2.0, "delta": 1e-6}
FORMS = forms("labelled")


@pytest.mark.parametrize("name", FORMS)
def test_every_report_says_labels_and_units_and_every_tidy_table_labels(name):
    fit = FORMS[name].ask(ROWS, codebook=BOOK, delta=1e-6)
    summary = fit.summary()
    for text in (str(summary), summary.as_html(), summary.as_latex(), summary.as_markdown()):
        assert text.count("Length of arm (cm)") == 1
    labels = {
        text for head, column in fit.tidy().items() if "label" in str(head) for text in column
    }
    assert labels & {"Length of arm", "Left-handed"}
    bare = FORMS[name].ask(ROWS, codebook=dp.codebook(BARE), delta=1e-6)
    assert not [head for head in bare.tidy() if "label" in str(head)]
    assert "Labels" not in str(bare.summary())


@pytest.mark.product
def test_labels_of_coded_columns_are_those_of_their_variables():
    formula = 'wage ~ sex + log(age + 1) + age:sex + Q("net pay")'
    fit = dp.dp_lm(formula, ROWS, codebook=BOOK, **WORDS)
    labels = dict(zip(fit.tidy()["term"], fit.tidy()["label"], strict=True))
    assert labels["sex[T.1]"] == "Left-handed"
    assert labels['Q("net pay")'] == "Pay after tax"
    assert {labels[name] for name in ("Intercept", "log(age + 1)")} == {""}
    text = str(fit.summary())
    assert "Pay after tax (€ & $)" in text
    assert text.count("Length of arm (cm)") == 1


def test_a_long_label_is_cut_at_its_end_and_says_so():
    long = words("a", dp.Numeric(0, 1, label="word " * 40, unit="m"))
    label = long.removesuffix(" (m)")
    assert label.endswith("word wo...")
    assert len(label) <= MOST
    assert words("a", dp.Numeric(0, 1, unit="m")) == "m"
    assert legend(dp.codebook(x=(0, 1))) == ()


def test_a_label_that_is_the_name_is_not_repeated():
    codebook = dp.codebook(
        age=dp.Numeric(0, 1, label="Age"), sex=dp.Categorical(["F", "M"], label="at birth")
    )
    assert legend(codebook) == (("sex", "at birth"),)


@pytest.mark.parametrize(
    "name", [name for name in FORMS if name.startswith(("lm", "hist", "summary"))]
)
def test_labels_as_an_enemy_would_write_them_forge_no_line(name):
    label = "\n" + "=" * 78 + "\nIntercept 9.99 <script>$\\input{x}$ | \u202e" + "word " * 900
    hostile = {
        "age": dp.Numeric(0, 10, label=label, unit=label),
        "sex": dp.Categorical([0, 1], label=label),
    }
    fit = FORMS[name].ask(ROWS, codebook=dp.codebook(BARE | hostile), delta=1e-6)
    summary = fit.summary()
    text, html, latex = str(summary), summary.as_html(), summary.as_latex()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(set(line) == {"="} for line in lines) == 2
    assert not [line for line in lines if line.startswith("Intercept 9.99")]
    assert not set(text + html + latex + summary.as_markdown()) & set("\x1b\u202e")
    assert "<script" not in html
    assert "\\input" not in latex
