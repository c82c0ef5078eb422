"""Private values stay where they are, and appear nowhere."""

from pathlib import Path

import law_canary
import law_secrets
import pytest
from contract_cases import BOOK, CASES, EACH_VERB, FEWER, FORMULA, Case, once

# A prediction follows from public facts, so one of each verb and mechanism is enough here.
PREDICTED_ONCE = True
MOST = once((*FEWER, *EACH_VERB))
# Which of the ways to give rows all is asked of: every case another.
TURNS = {case.values[0]: turn for turn, case in enumerate(MOST)}
WORDS = [pytest.param(words, id=name) for name, words in law_canary.REFUSED_WORDS.items()]


def test_private_values_show_nothing_and_stay():
    law_secrets.private_values_show_nothing_and_stay()


def test_private_types_refuse_to_be_copied():
    law_secrets.private_types_refuse_to_be_copied()


def test_what_is_not_shown_is_not_read():
    law_secrets.what_is_not_shown_is_not_read()


def test_private_types_are_listed():
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
    law_secrets.private_types_are_listed(text)
    with pytest.raises(AssertionError):
        law_secrets.private_types_are_listed(text.replace("`PrivateLevels`", ""))


@pytest.mark.parametrize("case", EACH_VERB, ids=str)
def test_what_is_about_to_cross_shows_nothing(case: Case):
    law_secrets.what_is_about_to_cross_shows_nothing(case)


@pytest.mark.parametrize("case", MOST)
def test_a_result_holds_nothing_of_the_rows(case: Case):
    law_secrets.a_result_holds_nothing_of_the_rows(case)


@pytest.mark.expensive
@pytest.mark.parametrize("case", MOST)
def test_a_fit_tells_no_cell(case: Case, tmp_path):
    law_canary.a_fit_tells_no_cell(case, tmp_path, TURNS[case])


@pytest.mark.product
@pytest.mark.parametrize("options", [1, 2])
@pytest.mark.parametrize("case", MOST)
def test_a_fit_tells_no_cell_however_rows_are_given(case: Case, options: int, tmp_path):
    law_canary.a_fit_tells_no_cell(case, tmp_path, TURNS[case] + options)


@pytest.mark.expensive
@pytest.mark.parametrize(
    "case", once(case for case in FEWER if case.mechanism.family == "covariance")
)
def test_a_covariance_tells_no_cell(case: Case, tmp_path):
    law_canary.a_covariance_tells_no_cell(case, tmp_path)


@pytest.mark.parametrize("case", EACH_VERB, ids=str)
def test_a_refusal_tells_no_cell(case: Case):
    law_canary.a_refusal_tells_no_cell(case)


def test_moments_tell_no_cell(tmp_path):
    law_canary.moments_tell_no_cell(tmp_path)


@pytest.mark.parametrize("give", law_canary.REFUSED_DATA.values(), ids=law_canary.REFUSED_DATA)
def test_no_refusal_of_the_data_tells_a_cell(give, tmp_path):
    data = give(tmp_path)
    law_canary.a_failure_tells_no_cell(lambda: CASES[0].fit(FORMULA, data, BOOK))


@pytest.mark.parametrize("words", WORDS)
def test_no_refusal_of_an_argument_tells_a_cell(words):
    words = {"formula": FORMULA, "codebook": BOOK} | words()
    law_canary.a_failure_tells_no_cell(lambda: CASES[0].fit(data=law_canary.rare(), **words))


@pytest.mark.parametrize(
    "ask", law_canary.REFUSED_OF_A_FIT.values(), ids=law_canary.REFUSED_OF_A_FIT
)
def test_no_refusal_of_a_result_tells_a_cell(ask, tmp_path):
    fit = CASES[0].fit(FORMULA, law_canary.rare(), BOOK)
    law_canary.a_failure_tells_no_cell(lambda: ask(fit, tmp_path))
