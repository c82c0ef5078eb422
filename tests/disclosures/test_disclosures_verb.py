"""The disclosure report: what it says of ledgers and releases is theirs, and nothing is hidden."""

import errno
import os
import re
from copy import deepcopy

import pytest

import dpmodels as dp
from dpmodels.digest import release_digest
from dpmodels.disclosures.blocks import Code, as_page, as_text
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.privacy import LaplaceEvent

BOOK = dp.codebook(age=(0, 100), wage=(0, 80), sex=["F", "M"])
ROWS = {"age": [20, 40, 60] * 900, "wage": [10, 30, 20] * 900, "sex": ["F", "M"] * 1350}
SIMPLE = {"codebook": BOOK, "eps": 0.5}


def plain(report):
    """The report's Markdown without its escapes."""
    return re.sub(r"\\(.)", r"\1", report.as_markdown())


def disclosed(of, **words):
    return dp.disclosure(of, pictures=False, **words)


@pytest.fixture(scope="module")
def study():
    """A session with two releases, and a charge that nothing came of."""
    session = dp.session(ROWS, BOOK, eps=2.0, delta=1e-6)
    fits = session.mean("age ~ sex", eps=0.5), session.moments("~ age + wage", eps=0.5)
    session.ledger.charge([LaplaceEvent(5.0)], adjacency="replace", label="dp_lm wage ~ age")
    return session, *fits


def test_the_total_is_the_ledgers_own_in_words(study):
    session = study[0]
    text = plain(disclosed(session))
    ledger = session.ledger
    assert f"Charged so far: {ledger.spent.describe()} (" in text
    assert f"together satisfies the guarantee {ledger.guarantee.describe()}." in text
    assert "exp(2) = 7.39" in text
    assert "one row is replaced by any other. The number of rows is public" in text
    for digested in (ledger.head, *ledger.register()["hash"], *ledger.register()["digest"]):
        assert digested in text
    assert str(ledger.register()["codebook"].iloc[0]) in text


def test_a_session_brings_the_results_it_made(study):
    session, means, moments = study
    assert session.results == (means, moments)
    text = plain(disclosed(session))
    assert "### Private mean" in text
    assert "### Private moments" in text
    assert "No result is available" not in text
    assert disclosed([session, means]).as_markdown() == disclosed(session).as_markdown()
    for name, mean in means.params.items():
        assert str(name) in text, mean


def test_results_come_first_then_the_guarantee_charges_and_digests(study):
    text = plain(disclosed(study[0]))
    assert re.findall("^## (.*)", text, re.MULTILINE) == [
        "About this report",
        "Results",
        "Guarantee of all releases",
        "What is guaranteed",
        "What is not guaranteed",
        "Charges to the ledger, in memory",
        "Mechanisms",
        "Declarations and their sources",
        "Paragraph for a methods section",
        "What can be reproduced",
        "References",
        "Signature",
        "Annex: digests and versions",
    ]
    body, annex = text.split("## Annex: digests and versions")
    assert not re.search("[0-9a-f]{32}", body)
    ledger = study[0].ledger
    for digest in (
        ledger.head,
        *ledger.register()["hash"],
        *filter(None, ledger.register().digest),
    ):
        assert digest in annex
    assert "numpy" in annex


def test_releases_in_no_ledger_have_their_digests_in_the_annex_too():
    fit = dp.dp_mean("age", ROWS, **SIMPLE)
    body, annex = plain(disclosed(fit)).split("## Annex")
    assert not re.search("[0-9a-f]{32}", body)
    assert release_digest(fit.release) in annex


def test_a_warning_about_simulations_precedes_the_results(study):
    with dp.simulation(seed=1):
        loose = dp.dp_mean("wage", ROWS, **SIMPLE)
    text = plain(disclosed([study[0], loose]))
    assert text.index("This report contains simulations") < text.index("## Results")


def test_an_unfinished_charge_is_listed_as_spent(study):
    text = plain(disclosed(study[0]))
    assert "3 charges, 1 of them unfinished" in text
    line = next(line for line in text.splitlines() if line.startswith("| 3 dp_lm wage ~ age"))
    assert "unfinished: counts as spent" in line
    assert f"{study[0].ledger.spent.amount:.2f}" in line
    assert "0.200" in line


def test_two_fits_of_one_release_are_one_release(study, tmp_path):
    session, _, moments = study
    first, two = moments.lm("wage ~ age"), moments.lm("age ~ 1")
    two.save(tmp_path / "two.nc")
    assert release_digest(two.release) != release_digest(moments.release)
    for value in (two, dp.load(tmp_path / "two.nc")):
        report = disclosed([session, first, value, first])
        text = plain(report)
        assert repr(report).endswith("1 ledger, 3 charges, 1 unfinished, 0 releases in no ledger>")
        kind = "Private linear regression"
        assert f"{kind}, wage ~ age; {kind}, age ~ 1 |" in text
        assert text.count("### Private linear regression") == 2
    alone = disclosed([first, two, moments])
    assert "0 ledgers, 0 charges, 0 unfinished, 1 release in no ledger" in repr(alone)
    assert "One release, in no ledger." in plain(alone)


def test_a_part_of_an_overview_is_found_in_its_ledger():
    ledger = dp.Ledger(eps=2.0)
    fit = dp.dp_summary("~ age + sex", ROWS, ledger=ledger, **SIMPLE)
    assert "0 releases in no ledger" in repr(disclosed([ledger, fit["age"]]))


def test_conditions_and_sites_are_told():
    fit = dp.dp_mean("age", ROWS, subset="sex == 'F'", **SIMPLE)
    assert "| Subset | sex == 'F' |" in plain(disclosed(fit))
    sites = {"north": ROWS, "south": deepcopy(ROWS)}
    shared = dp.dp_mean("age", sites=sites, protocol="pooled", **SIMPLE)
    text = plain(disclosed(shared))
    assert "| Sites | 2, protocol pooled |" in text
    assert f"| Guarantee holds against | {shared.release.shared.holds} |" in text


def test_of_results_without_a_ledger_no_total_is_stated():
    fits = [dp.dp_mean("age", ROWS, **SIMPLE), dp.dp_mean("wage", ROWS, **SIMPLE)]
    text = plain(disclosed(fits))
    assert "Their total cannot be known from this report" in text
    assert "- Private mean, age: eps = 0.5 (replace one row, n public)" in text
    assert "- Private mean, wage: eps = 0.5" in text
    assert not re.search(r"eps = 1\b", text)


def test_simulations_are_stamped_never_hidden(study):
    with dp.simulation(seed=1):
        ledger = dp.Ledger(eps=2.0)
        charged = dp.dp_mean("age", ROWS, ledger=ledger, **SIMPLE)
        loose = dp.dp_mean("wage", ROWS, **SIMPLE)
    mixed = disclosed([study[0], study[1], loose])
    for text in (plain(mixed), mixed.as_html()):
        assert text.count("CONTAINS A SIMULATION - NOT PRIVATE") >= 2
    assert "Simulations without a ledger or guarantee: 1." in plain(mixed)
    assert "| Guarantee | none: a simulation |" in plain(mixed)
    result = disclosed([ledger, charged, study[0]])
    assert "Charge 1 of the ledger 1, in memory is a simulation" in plain(result)
    assert "simulation, released" in plain(result)
    assert (
        "Everything charged to it except simulations, now and later, together satisfies"
        in plain(result)
    )
    assert result.stamp == "CONTAINS A SIMULATION - NOT PRIVATE"
    assert disclosed(loose).stamp == "SIMULATION - NOT PRIVATE"
    assert disclosed(study[1]).stamp is None
    assert "What is guaranteed\n" not in disclosed(loose).as_markdown()


def test_two_ledgers_have_a_part_each_and_no_sum(tmp_path, study):
    place = tmp_path / "a.ledger"
    session = dp.Ledger.open(place, eps=2.0, new=True)
    dp.dp_mean("age", ROWS, ledger=session, **SIMPLE)
    ledger = dp.Ledger(budget=dp.ZCDP(0.1))
    text = plain(disclosed([session, ledger, str(place), study[0], study[0].ledger]))
    assert re.findall("^## Charges to the (.*)", text, re.MULTILINE) == [
        "ledger 1, a.ledger",
        "ledger 2, in memory",
        "ledger 3, in memory",
    ]
    assert "Ledgers are not added up" in text
    assert "0.1-zero-concentrated" in text
    assert "eps = 4" not in text
    assert "No result is available for 1 released charge of the ledger 1, a.ledger" in text


def test_what_is_no_differential_privacy_is_said_not_to_be():
    chain = dp.Pufferfish(1.0, dp.markov_chain(["rest", "walk"], stay=0.8))
    book = dp.codebook(activity=["rest", "walk"], minute=dp.Integer(1, 50))
    rows = {"activity": ["rest", "walk"] * 25, "minute": [*range(1, 51)], "id": [1] * 50}
    ledger = dp.Ledger(budget=chain)
    words = {"codebook": book, "time": "minute", "person": "id", "budget": chain}
    fit = dp.dp_table("~ activity", rows, ledger=ledger, **words)
    text = plain(disclosed([ledger, fit]))
    assert "It is not differential privacy." in text
    assert "read as tests" not in text
    assert "Tables are neighbours" not in text


def test_randomised_answers_have_their_own_words():
    device = dp.randomized_response(["no", "yes"], eps=1.0)
    answers = {"drug": device.randomize(["no", "yes"] * 200)}
    fit = dp.dp_survey("~ drug", answers, codebook=dp.codebook(), device={"drug": device})
    text = plain(disclosed(fit))
    assert "one respondent's true answer is replaced by any other" in text
    assert "including whoever holds the answers" in text


def test_bounds_that_were_bought_are_said_to_be():
    session = dp.session(ROWS, BOOK, eps=4.0)
    bounds = session.bounds("~ wage", eps=1.0)
    text = plain(disclosed([session, bounds], provenance="The register of *wages*"))
    assert "- charge 1 of the ledger, in memory, dp_bounds ~ wage" in text
    assert "as stated by the author: The register of *wages*" in text
    assert "No release listed here estimated bounds or levels" in plain(
        disclosed(dp.dp_mean("age", ROWS, **SIMPLE))
    )


def test_hostile_names_act_nowhere():
    name = '<script>alert(1)</script>|"\x1b[31m'
    words = dict.fromkeys(("title", "author", "contact", "purpose", "provenance"), name)
    ledger = dp.Ledger(eps=2.0)
    ledger.charge([LaplaceEvent(5.0)], adjacency="replace", label=name)
    report = disclosed(ledger, **words)
    for html in (report.as_html(), report._repr_html_()):
        assert "<script" not in html
        assert "\x1b" not in html
        assert "http" not in html
    text = report.as_markdown()
    assert "<script" not in text.replace(r"\<", "")
    rows = [line for line in text.splitlines() if line.startswith(("| Author", "| 1 "))]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in rows] == [3, 7]
    assert "\x1b" not in repr(report) + text


@pytest.mark.parametrize(("stamp", "head"), [(None, "A & B"), ("SIMULATION", "SIMULATION: A & B")])
def test_the_title_of_the_page_begins_with_the_stamp(stamp, head):
    page = as_page("A & B", stamp, ())
    assert f"<title>{head.replace('&', '&amp;')}</title>" in page
    assert page.count('<p class="warning">SIMULATION</p>') == 2 * (stamp is not None)
    assert "<h1>A &amp; B</h1>" in page


def test_it_is_written_whole_or_not_at_all(study, tmp_path, monkeypatch):
    report = disclosed(study[0])
    report.save(tmp_path / "a.html")
    report.save(tmp_path / "a.md")
    assert (tmp_path / "a.html").read_text("utf-8") == report.as_html()
    assert (tmp_path / "a.md").read_text("utf-8") == report.as_markdown()
    with pytest.raises(FrameError, match="already exists"):
        report.save(tmp_path / "a.html")
    with pytest.raises(ArgumentError, match=r"ends in \.html or \.md"):
        report.save(tmp_path / "a.pdf")

    def refuse(*inputs, **words):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(type(report), "as_html", lambda value: pytest.fail("written too early"))
    with pytest.raises(FrameError, match="takes no files"):
        report.save(tmp_path / "b.html")
    monkeypatch.undo()
    assert {path.name for path in tmp_path.iterdir()} == {"a.html", "a.md"}


@pytest.mark.parametrize(
    ("of", "error", "message"),
    [
        ([], ArgumentError, "nothing to disclose"),
        (3, ArgumentError, "an object of type int cannot be disclosed: expected results, ledgers"),
        (
            [dp.reading(eps=1.0)],
            ArgumentError,
            "type ReadingResult cannot be disclosed",
        ),
        (BOOK, ArgumentError, "an object of type Numeric cannot be disclosed"),
        ("nowhere.ledger", FrameError, "'nowhere.ledger' cannot be read"),
        (__file__, FrameError, "cannot be read as a saved result"),
    ],
)
def test_what_cannot_be_disclosed_is_refused_by_name(of, error, message):
    with pytest.raises(error, match=message):
        disclosed(of)


def test_words_have_to_be_texts(study):
    with pytest.raises(ArgumentError, match="author=3"):
        disclosed(study[0], author=3)
    with pytest.raises(ArgumentError, match="title is empty"):
        disclosed(study[0], title=" ")


@pytest.mark.expensive
def test_pictures_are_in_the_file_with_their_words(study):
    report = dp.disclosure(study[2].lm("wage ~ age"))
    matches = re.findall(r'<img alt="([^"]+)" src="data:image/png;base64,', report.as_html())
    (words,) = matches
    assert "Coefficient (wage)." in words
    assert "eps = " in words
    marked = re.findall(r"^!\[.+\]\(data:image/png;base64,", report.as_markdown(), re.MULTILINE)
    assert len(marked) == 1
    assert "<img" not in disclosed(study[2].lm("wage ~ age")).as_html()


@pytest.mark.parametrize(("text", "fence"), [("a = 1", 3), ("a ``` b", 4), ("` ````` `", 6)])
def test_code_is_fenced_by_more_backticks_than_it_has(text, fence):
    assert as_text("t", None, [Code(text)]).endswith(f"\n{'`' * fence}\n{text}\n{'`' * fence}\n")
