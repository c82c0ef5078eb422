"""At most four notes stand below a table, and all of them where a user asks for them."""

import ast
import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path

import pytest
from verb_entry import ROWS, fitted
from verbs import forms

import dpmodels as dp
from dpmodels import reports, results
from dpmodels.errors import ArgumentError
from dpmodels.report import Report
from dpmodels.report.layout import WIDTH, wrap
from dpmodels.report.notes import SHORT, Rank, ranked, separated, shortened
from dpmodels.results.base import STAMP, Printed

FORMS = forms("stored")
FORMATS = ("as_text", "as_html", "as_latex", "as_markdown")
MORE = ' summary(notes="all") shows '
BOOK = dp.codebook(age=(0, 100), sex=[0, 1])


def guarantees(report):
    return [note for note in report.notes if getattr(note, "rank", None) == Rank.GUARANTEE]


def texts(module):
    """The texts of a module but its docstrings, with a short word for each value."""
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    parts = {
        id(part)
        for text in ast.walk(tree)
        if isinstance(text, ast.JoinedStr)
        for part in ast.walk(text)
        if part is not text
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) or id(node) in parts:
            parts |= {id(part) for part in ast.iter_child_nodes(node)}
        elif isinstance(node, ast.JoinedStr):
            words = (getattr(part, "value", None) for part in node.values)
            yield "".join(word if isinstance(word, str) else "123" for word in words)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def modules(package):
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def is_long(text):
    return len(wrap(text, WIDTH, indent=2)) > 2


@pytest.mark.product
def test_no_note_has_three_lines_whichever_branch_prints_it():
    notes = [text for module in modules(reports) for text in texts(module)]
    assert len(notes) > 1_500
    assert list(filter(is_long, notes)) == []
    of_tables = [note for module in modules(results) for note in getattr(module, "NOTES", ())]
    assert len(of_tables) > 5
    assert list(filter(is_long, of_tables)) == []


@pytest.mark.parametrize("stamp", [None, STAMP])
@pytest.mark.parametrize("name", FORMS)
def test_every_verb_prints_at_most_four_notes_of_two_lines(name, stamp):
    fit = fitted(FORMS[name])
    full = replace(ranked(fit._report()), stamp=stamp)
    short = shortened(full)
    assert len(short.notes) + (stamp is not None) <= SHORT
    assert all(len(wrap(note, WIDTH, indent=2)) <= 2 for note in (*full.notes, *short.notes[:-1]))
    printed = " ".join(short.notes)
    assert all(note in printed for note in guarantees(full))
    # What is shown is the beginning of what there is.
    values = [note.partition(MORE)[0] for note in short.notes if not note.startswith(MORE.strip())]
    assert " ".join(full.notes).startswith(" ".join(values))
    assert (MORE.strip() in printed) == (" ".join(values) != " ".join(full.notes))


@pytest.mark.parametrize("name", FORMS)
def test_every_verb_prints_all_notes_where_they_are_asked_for(name):
    fit = fitted(FORMS[name])
    full = fit.summary(notes="all").report.notes
    assert full == ranked(fit._report()).notes
    assert set(full) == set(fit._report().notes)
    assert fit.summary().report == shortened(fit._report())
    text = " ".join(fit.summary(notes="all").as_text().split())
    assert all(" ".join(note.split()) in text for note in full)
    # States of a series are those of persons, who are not the unit of protection.
    if fit.release.adjacency.person is None and "person" not in fit.request.options:
        assert [note for note in full if "person" in note] == []


def test_the_stamp_of_a_simulation_stands_above_and_below_in_every_format():
    with dp.simulation(seed=1):
        fit = dp.dp_mean("age ~ sex", ROWS, codebook=BOOK, eps=1.0)
    for notes in ("short", "all"):
        for form in FORMATS:
            assert getattr(fit.summary(notes=notes), form)().count(STAMP) == 2


@pytest.mark.guarding
@pytest.mark.parametrize("bad", ["long", "ALL", None, True, 4])
def test_another_word_is_refused_before_anything_is_laid_out(bad):
    class Silent(Printed):
        def _report(self):
            raise AssertionError("laid out")

    with pytest.raises(ArgumentError, match=r'notes=.*expected "short" or "all"'):
        Silent().summary(notes=bad)


def report(*notes, title="A", stamp=None):
    return Report(title, (), (), notes, stamp)


def test_limits_of_the_guarantee_share_a_line_rather_than_get_lost():
    limits = Rank.GUARANTEE(*(f"Limit {number}." for number in range(6)))
    short = shortened(report("A plain note.", *limits))
    assert short.notes[:3] == limits[:3]
    assert short.notes[3] == f"Limit 3. Limit 4. Limit 5.{MORE}1 more."
    stamped = shortened(report(*limits, stamp=STAMP))
    assert stamped.notes == (*limits[:2], "Limit 2. Limit 3. Limit 4. Limit 5.")


def test_a_long_detail_makes_way_for_the_number_of_the_others():
    details = Rank.DETAIL(*(f"{number} " + "word " * 28 + "end." for number in range(5)))
    assert shortened(report(*details)).notes == (*details[:3], f"{MORE.strip()} 2 more.")


def test_few_notes_are_shown_as_they_are():
    assert shortened(report()).notes == ()
    assert shortened(report("One.", "Two.", "One.")).notes == ("One.", "Two.")


def test_notes_of_several_reports_are_printed_once():
    reports, common = separated(
        [report("One.", "Two."), report("One.", "Two.", title="B"), report("One.", title="C")]
    )
    assert common == ("One.", "A, B: Two.")
    assert [report.notes for report in reports] == [(), (), ()]
    alone = report("One.", "Two.")
    assert separated([alone]) == ((alone,), ())


@pytest.mark.product
def test_a_disclosure_prints_common_notes_once():
    fits = [dp.dp_mean("~ age", ROWS, codebook=BOOK, eps=eps, rows=3) for eps in (1.0, 2.0)]
    text = " ".join(dp.disclosure(fits).as_markdown().split())
    assert text.count("Any 3 rows may be dependent") == 1
    assert "Notes of several results:" in text
    assert "Notes of several results:" not in dp.disclosure(fits[:1]).as_markdown()


def test_notes_of_the_user_are_always_below_a_table_of_results():
    fits = [dp.dp_mean("~ age", ROWS, codebook=BOOK, eps=eps) for eps in (1.0, 2.0)]
    table = dp.etable(fits, notes=["Wages in francs.", "Draft."], statistic=["std_error"])
    assert len(table.summary().report.notes) <= SHORT
    assert all(note in str(table) for note in ("Wages in francs.", "Draft."))
