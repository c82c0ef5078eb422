"""Every wrong argument of the verb is refused: typed, helpful, early, free of charge."""

import law_arguments
import pytest
from contract_cases import EACH_VERB, Case
from folded import each


@each("argument, changes, kind", law_arguments.BAD)
def test_a_bad_argument(argument, changes, kind):
    law_arguments.a_bad_call_is_refused_for_free(argument, changes, kind)


@pytest.mark.parametrize(("variable", "declared"), law_arguments.BAD_CODEBOOKS)
def test_a_bad_codebook(variable, declared):
    law_arguments.a_bad_codebook_is_refused(variable, declared)


@pytest.mark.parametrize(("what", "data"), law_arguments.BAD_DATA)
def test_bad_data(what, data):
    law_arguments.bad_data_are_refused_for_free(what, data)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.verb.name}{case.verb.suffix}")
        for case in EACH_VERB
        if case.verb.name != "dp_pca"
    ],
)
def test_bad_calls_of_a_verb(case: Case):
    @each("argument, changes, kind", law_arguments.bad_calls(case))
    def refused(argument, changes, kind):
        law_arguments.a_bad_call_of_a_verb_is_refused_for_free(case, argument, changes, kind)

    refused()
