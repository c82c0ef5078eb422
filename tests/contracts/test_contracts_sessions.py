"""A session reveals nothing of its rows, whichever verb it is asked, and whatever goes wrong."""

from operator import attrgetter

import law_canary
import pytest
from contract_cases import BOOK, EACH_VERB, Case, once

import dpmodels as dp
from dpmodels.errors import DPModelsError
from dpmodels.sessions.call import method_name


def told(session: dp.session) -> list[str]:
    """Every text a session gives."""
    register = session.register().drop(columns=["time", "digest", "hash"])
    return [repr(session), session._repr_html_(), register.to_csv(), repr(session.codebook)]


@pytest.mark.parametrize("case", once(EACH_VERB, attrgetter("verb.name")))
def test_a_session_tells_no_cell(case: Case):
    words = {
        word: value for word, value in case.words.items() if word not in ("budget", "adjacency")
    }
    session = dp.session(
        law_canary.rare(), BOOK, budget=case.guarantee, adjacency=case.adjacency, share="1/2"
    )
    name = case.verb.name.removeprefix("dp_")
    ask = getattr(session, method_name(name))
    if getattr(session.call, name)("~ .").spends_delta:
        words["delta"] = case.guarantee.delta / 4

    def fits() -> list[str]:
        plan = session.plan([(case.verb.name, case.formula, words)])
        with case.inside:
            fit = ask(case.formula, **words)
        return [repr(fit), repr(plan), plan.summary().as_text(), *told(session)]

    law_canary.tells_nothing(law_canary.heard(fits))
    assert len(session.register()) == 1
    for wrong in (
        {"data": law_canary.rare()},
        {"subset": law_canary.rare()},
        {"eps": law_canary.rare()},
        {"share": law_canary.rare()["age"]},
        {"mechanism": law_canary.rare()["age"]},
    ):
        with pytest.raises(DPModelsError) as caught:
            ask(case.formula, **words | wrong)
        law_canary.tells_nothing(str(caught.value))
    law_canary.tells_nothing("\n".join(told(session)))
    assert len(session.register()) == 1
