import json

import numpy as np
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.atomic_files import write_whole
from dpmodels.errors import ArgumentError, BudgetError, FrameError, LedgerError
from dpmodels.models.site_files import sent_verbs
from dpmodels.sites import message as letters
from dpmodels.verbs import VERBS as DECLARED

CB = dp.codebook(age=(0, 100), wage=(0, 250_000), sex=["F", "M"])
AGREED = {"codebook": CB, "session": "s-1", "budget": dp.ZCDP(1e12)}
FORMS = {form.verb.short: form for form in forms("sites").values()}
PROTOCOLS = ("full", "dpdispca", "cape", "secure_sum")


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(0, 100, n),
        "wage": rng.uniform(0, 2.5e5, n),
        "sex": rng.choice(["F", "M"], n),
    }


DATA = {name: rows(150, seed) for seed, name in enumerate("ABC")}


def written(folder, protocol, verb="pca", change=None, **words):
    """Files of three sites; `change` replaces words of site B."""
    folder.mkdir(exist_ok=True)
    name = protocol if isinstance(protocol, str) else protocol.trust.name
    keyed, cards = name in ("cape", "secure_sum"), []
    if keyed:
        cards = [dp.site_key(site, folder / f"{site}.key") for site in DATA]
    files = []
    for site, data in DATA.items():
        options = {"protocol": protocol, "verb": verb, **AGREED, **words}
        if keyed:
            unit = {"budget": options["budget"], "adjacency": options.get("adjacency", "replace")}
            ledger = dp.Ledger.open(folder / f"{site}.ledger", **unit, new=True)
            options |= {"key": folder / f"{site}.key", "cards": cards, "ledger": ledger}
        if site == "B" and change:
            options |= change
        files.append(folder / f"{site}.json")
        dp.site_release(
            options.pop("formula", FORMS[verb].formula), data, files[-1], site=site, **options
        )
    return files


def released(fit):
    release = fit.release
    return release.values if hasattr(release, "values") else release.second


def test_every_verb_whose_sites_write_files_is_tried():
    assert set(FORMS) == set(sent_verbs())


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("verb", FORMS)
def test_files_give_what_one_process_gives(verb, protocol, relation, tmp_path):
    if protocol not in FORMS[verb].verb.protocols:
        with pytest.raises(ArgumentError, match=r"the leading (directions|part) of"):
            written(tmp_path, protocol, verb)
        return
    # One process knows how many rows there are, by which a grid of times is chosen
    grid = {"breaks": 4} if verb == "survfit" else {}
    fit = dp.combine(written(tmp_path, protocol, verb, adjacency=relation, **grid)[::-1])
    words = {"codebook": CB, "budget": dp.ZCDP(1e12), "adjacency": relation, **grid}
    if protocol == "secure_sum":  # In one process its sites take part in many rounds
        words["mechanism"] = DECLARED[verb].gaussian
    with dp.options(clipping=False):
        once = FORMS[verb].function(FORMS[verb].formula, sites=DATA, protocol=protocol, **words)
    assert released(fit) == pytest.approx(released(once), rel=1e-5, abs=1e-3)
    assert fit.release.rows == once.release.rows
    assert fit.release.shared.sites == ("A", "B", "C")
    assert fit.release.events == once.release.events
    text = str(fit.summary())
    assert f"3, protocol {protocol}" in text


def test_noise_of_files_is_said_to_be_that_of_one_process(tmp_path):
    for verb in ("cov", "hist"):
        fit = dp.combine(written(tmp_path / verb, "full", verb))
        words = {"codebook": CB, "budget": dp.ZCDP(1e12), "sites": DATA, "protocol": "full"}
        with dp.options(clipping=False):
            once = FORMS[verb].function(FORMS[verb].formula, **words)
        sds = [
            release.noise.off if verb == "cov" else release.noise_sd
            for release in (fit.release, once.release)
        ]
        assert sds[0] == pytest.approx(sds[1])


@pytest.mark.parametrize("protocol", ["full", "secure_sum"])
def test_sites_may_agree_on_breaks(protocol, tmp_path):
    fit = dp.combine(written(tmp_path, protocol, "hist", breaks=(0, 18, 65, 100)))
    every = np.concatenate([value["age"] for value in DATA.values()])
    assert fit.breaks.tolist() == [0, 18, 65, 100]
    assert fit.counts.sum("sex").values.tolist() == np.histogram(every, fit.breaks)[0].tolist()
    again = {"breaks": [0, 18, 65.0, 100]}
    files = written(tmp_path / "other", protocol, "hist", change=again, breaks=(0, 18, 65, 100))
    with pytest.raises(FrameError, match="options breaks is"):
        dp.combine(files)


def test_a_file_holds_the_terms_and_no_rows(tmp_path):
    rare = {**rows(99, 1), "age": np.full(99, 77.123456)}
    path = tmp_path / "a.json"
    words = {"codebook": CB, "session": "x", "eps": 1.0, "delta": 1e-6, "protocol": "full"}
    dp.site_release("~ age + wage", rare, path, site="A", **words)
    plain = json.loads(path.read_text("utf-8"))
    assert "77.123456" not in path.read_text("utf-8")
    assert plain["terms"]["formula"] == "~ age + wage"
    assert len(plain["codebook_sha256"]) == 64
    assert plain["rows"] == 99
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"formula": "~ age"}, "formula is ~ age and not ~ age"),
        ({"codebook": dp.codebook(age=(0, 90), wage=(0, 1), sex=["F", "M"])}, "codebook"),
        ({"session": "s-2"}, "session is s-2 and not s-1"),
        ({"budget": dp.ZCDP(2.0)}, "guarantee"),
        ({"adjacency": "add-remove"}, "adjacency is add-remove"),
        ({"protocol": dp.sites.Full("sites")}, "protocol weights is sites and not rows"),
        ({"scale": None}, "options scale is None and not range"),
        ({"verb": "cov"}, "verb is cov and not pca"),
        ({"row_norm": 1.0}, r"options row_norm is 1\.0 and not 1;"),
    ],
)
def test_the_first_difference_is_named(change, message, tmp_path):
    files = written(tmp_path, "full", change=change, row_norm=1)
    with pytest.raises(FrameError, match=message):
        dp.combine(files)


def test_damaged_files_are_refused(tmp_path):
    files = written(tmp_path, "full")
    text = files[1].read_text("utf-8")
    for changed, message in [
        (text[: len(text) // 2], "truncated"),
        ("", "truncated"),
        ("[]", "truncated"),
        (text.replace('"rows": 150', '"rows": 151'), "changed after it was written"),
        (text.replace("s-1", "s-2"), "changed after it was written"),
        (text.replace("dpmodels.site/1", "dpmodels.site/9"), "has the format"),
    ]:
        assert changed != text
        files[1].write_text(changed, "utf-8")
        with pytest.raises(FrameError, match=message):
            dp.combine(files)
    files[1].unlink()
    with pytest.raises(FrameError, match="missing"):
        dp.combine(files)


def test_values_that_do_not_fit_the_terms_are_refused(tmp_path):
    files = written(tmp_path, "full")
    result = letters.read_message(files[0])
    files[0].unlink()
    short = result.__class__(**{**vars(result), "values": result.values[:-8]})
    write_whole(files[0], letters.seal(short).content)
    with pytest.raises(FrameError, match="another shape"):
        dp.combine(files)


def test_integers_of_another_lattice_are_refused(tmp_path):
    files = written(tmp_path, "full")
    for file in files:
        result = letters.read_message(file)
        file.unlink()
        second = result.__class__(**{**vars(result), "terms": {**result.terms, "basis": "0" * 64}})
        write_whole(file, letters.seal(second).content)
    with pytest.raises(FrameError, match="another lattice"):
        dp.combine(files)


def test_one_site_twice_is_refused(tmp_path):
    files = written(tmp_path, "full")
    with pytest.raises(FrameError, match="both of site 'A'"):
        dp.combine([*files, files[0]])
    with pytest.raises(ArgumentError, match="list of files"):
        dp.combine([])
    with pytest.raises(FrameError, match="already exists"):
        written(tmp_path, "full")


@pytest.mark.expensive
@pytest.mark.parametrize("protocol", ["cape", "secure_sum"])
def test_missing_and_replayed_files_of_masked_sums_are_refused(protocol, tmp_path):
    files = written(tmp_path / "one", protocol)
    with pytest.raises(FrameError, match="site 'C' is missing"):
        dp.combine(files[:2])
    again = written(tmp_path / "two", protocol)
    with pytest.raises(FrameError, match="keys A is"):
        dp.combine([files[0], *again[1:]])


def test_a_key_is_for_one_release(tmp_path):
    written(tmp_path, "secure_sum")
    words = {"site": "A", "protocol": "secure_sum", "key": tmp_path / "A.key", **AGREED}
    words["ledger"] = dp.Ledger.open(tmp_path / "A.ledger")
    cards = [tmp_path / f"{site}.key.card" for site in DATA]
    with pytest.raises(FrameError, match="was used"):
        dp.site_release("~ age", DATA["A"], tmp_path / "n.json", cards=cards, **words)
    with pytest.raises(FrameError, match="another site"):
        dp.site_release(
            "~ age", DATA["B"], tmp_path / "n.json", cards=cards, **{**words, "site": "B"}
        )
    assert "private" not in (tmp_path / "A.key").read_text("utf-8")
    with pytest.raises(FrameError, match="already exists"):
        dp.site_key("A", tmp_path / "A.key")


def test_a_refused_release_writes_nothing_and_keeps_the_key(tmp_path):
    card = [dp.site_key(site, tmp_path / f"{site}.key") for site in "AB"]
    small, ledger = (
        dp.Ledger.open(tmp_path / f"{eps}.ledger", eps=eps, delta=1e-6, new=True)
        for eps in (0.1, 1.0)
    )
    words = {"site": "A", "session": "x", "codebook": CB, "protocol": "secure_sum"}
    words |= {"key": tmp_path / "A.key", "cards": card}
    path = tmp_path / "a.json"
    with pytest.raises(LedgerError):
        dp.site_release("~ age", DATA["A"], path, eps=1.0, delta=1e-6, ledger=small, **words)
    assert not path.exists()
    assert "private" in (tmp_path / "A.key").read_text("utf-8")
    for match, change in [
        ("needs key=", {"key": None}),
        ("dropouts=1", {"protocol": dp.sites.SecureSum(0, 1)}),
        ("are not for protocol='full'", {"protocol": "full"}),
        ("verb='svd'", {"verb": "svd"}),
        ("is not a parameter of verb", {"rotate": 1}),
        ("write delta=1e-6", {"delta": 0.0}),
        ("expected one of 'full'", {"protocol": "pooled"}),
        ("session=None", {"session": None}),
    ]:
        options = {"eps": 1.0, "delta": 1e-6, "ledger": ledger, **words, **change}
        with pytest.raises((ArgumentError, BudgetError), match=match):
            dp.site_release("~ age", DATA["A"], path, **options)
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".json") == []
    assert small.entries == ledger.entries == ()


def test_each_site_says_what_a_row_of_its_file_is(tmp_path):
    note = '"' + "\n" * 9 + '"'
    for name, n_rows in (("A", 150), ("B", 159)):
        text = "age,note\n" + f"20,{note}\n" + "30,ok\n" * 149
        (tmp_path / f"{name}.csv").write_text(text)
        mode = {"A": None, "B": "lines"}[name]
        words = {"protocol": "full", "verb": "mean", "csv": mode, **AGREED}
        dp.site_release(
            "~ age", tmp_path / f"{name}.csv", tmp_path / f"{name}.json", site=name, **words
        )
        assert dp.combine([tmp_path / f"{name}.json"]).release.rows == n_rows


def test_a_way_of_reading_files_needs_a_file(tmp_path):
    words = {"protocol": "full", "csv": "lines", "site": "A", **AGREED}
    with pytest.raises(ArgumentError, match=r"csv='lines' goes with the path of a \.csv file"):
        dp.site_release("~ age", DATA["A"], tmp_path / "a.json", **words)
