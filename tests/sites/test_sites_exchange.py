"""An exchange of rounds by files: one result, one charge, and no message made twice."""

import shutil

import numpy as np
import pytest
from exchange_cases import SITES, rows_of, study

import dpmodels as dp
from dpmodels.design.rows import Rows
from dpmodels.errors import ArgumentError, FrameError, LedgerError
from dpmodels.sites.key_file import is_wiped
from dpmodels.sites.message import copy_file


@pytest.fixture
def three(tmp_path):
    return study(tmp_path)


def test_an_exchange_ends_with_the_result_of_the_verb(three):
    fit = three.finish()
    assert fit.release.shared.sites == SITES
    assert fit.release.rows == 900
    assert "kept by each site" in str(fit.summary())
    assert three.charges() == [1, 1, 1]
    digests = set()
    for site in SITES:
        assert three.turn(site).is_file()
        assert is_wiped(three.key(site))
        lines = list(three.ledger(site).register().itertuples())
        assert {line.state for line in lines} == {"released"}
        digests.add(lines[0].digest)
    assert len(digests) == 1


def test_a_repeated_turn_sends_the_same_bytes_and_charges_nothing(three):
    before = [three.turn(site).read_bytes() for site in SITES]
    three.message(1, "B").unlink()
    assert [three.turn(site, data={"a": [], "b": []}).read_bytes() for site in SITES] == before
    assert three.charges() == [1, 1, 1]
    three.combine()
    text = three.shown()
    three.combine()
    assert three.shown() == text


def test_what_a_site_keeps_is_for_its_owner_alone(three):
    three.turns()
    for site in SITES:
        for file in three.key(site).parent.glob("site.key*"):
            if file.suffix != ".card":
                assert file.stat().st_mode & 0o077 == 0
    assert not any(b"private" in content for content in three.shown().values())


def test_the_open_round_names_the_sites_that_are_missing(three):
    three.turn("A")
    state = three.combine()
    assert (state.round, state.missing) == (1, ("B", "C"))
    assert "'B', 'C' are missing" in str(state)
    assert "charged once" in str(state)
    assert not three.answer(1).exists()
    assert dp.combine(three.folder, wait=0.3) == state


def test_answers_are_enough_for_the_result(three):
    fit = three.finish()
    for file in three.folder.glob("message-*"):
        file.unlink()
    again = three.combine()
    assert np.array_equal(again.release.second, fit.release.second)


def test_a_lost_copy_is_no_second_draw_of_noise(three):
    three.turns()
    copy_file(three.key("A"), 1).unlink()
    with pytest.raises(FrameError, match=r"older copy.*stays charged once"):
        three.turn("A")
    assert three.charges() == [1, 1, 1]


def test_an_older_copy_of_a_folder_is_no_second_draw_of_noise(three, tmp_path):
    """Key and record are copied; only the ledger knows what the copy lacks."""
    three.turn("A")
    older = tmp_path / "older"
    older.mkdir()
    for name in ("site.key", "site.key.used"):
        shutil.copy(three.key("A").with_name(name), older)
    three.message(1, "A").unlink()
    with pytest.raises(FrameError, match="older copy"):
        three.turn("A", key=older / "site.key")
    assert not three.message(1, "A").exists()
    assert three.charges()[0] == 1


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"formula": "~ a"}, FrameError, "site 'A' started with other terms: formula is ~ a"),
        ({"codebook": dp.codebook(a=(-10, 9), b=(-10, 10))}, FrameError, "codebook a range"),
        ({"eps": 0.5}, FrameError, "guarantee"),
        ({"session": "trial 8"}, FrameError, "session is trial 7 and not trial 8"),
        ({"formula": "~ a", "verb": "mean"}, FrameError, "verb is moments and not mean"),
        ({"data": {"a": [1.0]}}, FrameError, "'b'"),
        ({"formula": "~ zz"}, dp.errors.FormulaError, "zz"),
        ({"protocol": "full"}, ArgumentError, "key= and cards= are not|needs key="),
        ({"key": None}, ArgumentError, "needs key="),
        ({"ledger": None}, ArgumentError, "needs ledger="),
        ({"protocol": dp.sites.SecureSum(dropouts=1)}, ArgumentError, "dropouts=1"),
        ({"delta": 0.0}, ArgumentError, "delta"),
        ({"verb": "levels"}, ArgumentError, "run dp.dp_levels at each site"),
        ({"verb": "cov", "mechanism": "laplace"}, ArgumentError, "mechanism= is not a parameter"),
    ],
)
def test_terms_of_its_own_are_refused_before_a_charge(change, error, says, three):
    three.turn("A")
    with pytest.raises(error, match=says):
        three.turn("B", **change)
    assert three.charges() == [1, 0, 0]
    assert not copy_file(three.key("B"), 1).exists()
    assert three.turn("B").is_file()


def test_another_version_is_refused(three, monkeypatch):
    three.turn("A")
    monkeypatch.setattr("dpmodels.models.site_exchange.__version__", "0.0.1")
    with pytest.raises(FrameError, match="version"):
        three.turn("B")
    assert three.charges() == [1, 0, 0]
    with pytest.raises(FrameError, match="the same version"):
        three.combine()


def test_a_site_without_rows_takes_part(three):
    for _ in range(2):
        three.turn("A", data={"a": [], "b": []})
        three.turn("B")
        three.turn("C")
        fit = three.combine()
    assert fit.release.rows == 600


def test_one_secret_of_a_site_draws_the_rows_of_a_person_in_all_turns(tmp_path, monkeypatch):
    secrets, drawn_by = [], Rows.drawn_by

    def recorded(self, secret):
        secrets.append(secret)
        return drawn_by(self, secret)

    monkeypatch.setattr(Rows, "drawn_by", recorded)
    site_study, of_sites = study(tmp_path, ("A", "B"), person="id", rows=2), []
    for _ in range(3):
        for site in site_study.sites:
            data = rows_of(site) | {"id": [f"{site}{at // 5}" for at in range(300)]}
            site_study.turn(site, data=data, person="id", rows=2)
            of_sites.append(set(secrets))
            secrets.clear()
        fit = site_study.combine()
    assert fit.release.rows == 240
    assert all(of_site == of_sites[at % 2] for at, of_site in enumerate(of_sites) if of_site)
    (first,), (second,) = of_sites[:2]
    assert first != second
    assert len(first) == len(second) == 24


def test_parties_agree_on_whether_values_beyond_the_bounds_are_counted(three):
    three.turn("A")
    with dp.options(clipping=False), pytest.raises(FrameError, match="clipping is"):
        three.turn("B")
    assert three.charges() == [1, 0, 0]


@pytest.mark.product
def test_counts_are_too_noisy_for_few_rows_and_left_out(tmp_path):
    few, site_study = study(tmp_path / "few"), study(tmp_path / "many")
    fits = []
    for value, size in ((few, 20), (site_study, 3_000)):
        for _ in range(2):
            for site in SITES:
                value.turn(site, data=rows_of(site, size))
            fit = value.combine()
        fits.append(fit.release)
    assert fits[0].clipping is None
    assert fits[1].clipping.variables == ("a", "b")
    assert [len(release.events) for release in fits] == [2, 2]
    assert all("counts of values beyond the bounds" in release.shared.sees for release in fits)


def test_rows_that_can_be_read_once_are_refused_where_values_are_counted(three):
    with pytest.raises(FrameError, match=r"clipping=False.*Nothing was charged"):
        three.turn("A", data=iter([rows_of("A")]))
    assert three.charges() == [0, 0, 0]


def test_a_ledger_that_refuses_leaves_the_key_unused(three):
    session = dp.Ledger.open(three.top / "small.ledger", eps=0.1, delta=1e-6, new=True)
    with pytest.raises(LedgerError):
        three.turn("A", ledger=session)
    assert session.entries == ()
    assert three.turn("A").is_file()


def test_a_key_is_for_one_exchange(three, tmp_path):
    three.turn("A")
    with pytest.raises(FrameError, match="was used for a message or an exchange of other terms"):
        three.turn("A", session="trial 8")
    with pytest.raises(FrameError, match="was used"):
        three.turn("A", folder=tmp_path / "a.json")
    assert three.charges() == [1, 0, 0]


def test_a_copied_key_makes_no_second_message(three, tmp_path):
    three.turn("A")
    shutil.copy(three.key("B"), tmp_path / "copy.key")
    three.turn("B")
    with pytest.raises(LedgerError, match="site B' was used"):
        three.turn("B", key=tmp_path / "copy.key")
    assert three.charges() == [1, 1, 0]


def test_a_key_in_the_folder_of_all_is_refused(three):
    key = three.folder / "a.key"
    shutil.copy(three.key("A"), key)
    with pytest.raises(ArgumentError, match="lies in the folder of the exchange"):
        three.turn("A", key=key)


def test_another_message_at_the_place_of_ones_own_is_not_replaced(three):
    three.turn("A")
    three.message(1, "A").write_bytes(b"somebody else's")
    with pytest.raises(FrameError, match=r"already exists.*charged once, at its start"):
        three.turn("A")
    assert three.message(1, "A").read_bytes() == b"somebody else's"
