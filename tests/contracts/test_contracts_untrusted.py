"""Files that an enemy changed load as results that can be used, or raise errors of the package."""

import json
from collections import Counter

import pytest
import untrusted

import dpmodels as dp
from dpmodels.errors import DPModelsError, FrameError

SMALL = 40


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, saved_files = tmp_path_factory.mktemp("saved"), []
    for number, fit in enumerate(untrusted.results()):
        path = folder / f"{number}.nc"
        fit.save(path)
        saved_files.append((path.read_bytes(), untrusted.unsealed(path)))
    saved_files += ((path.read_bytes(), untrusted.unsealed(path)) for path in untrusted.FORMAT_1)
    return saved_files


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    return list(untrusted.letters(tmp_path_factory.mktemp("sent")))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return [dp.site_key(site, folder / f"{site}.key") for site in "AB"]


def outcome(work):
    """What became of a file; anything but an error of the package goes through."""
    try:
        texts = work()
    except DPModelsError as error:
        texts, kind = [str(error)], type(error).__name__
    else:
        kind = "loads"
    # What acts on a terminal is shown by its code.
    assert not any(mark in text for text in texts for mark in "\x1b\x9b\x07")
    return kind


def try_saved(saved, path, luck):
    raw, (written, facts, arrays) = luck.choice(saved)
    how = luck.randrange(6)
    if how == 0:
        path.write_bytes(untrusted.damaged(raw, luck))
    elif how == 4:
        request = luck.choice(saved)[1][1].get("request", {})
        path.write_bytes(untrusted.saved_as(written, {**facts, "request": request}, arrays))
    elif how == 5:
        request = untrusted.changed({"request": facts.get("request", {})}, luck)
        path.write_bytes(untrusted.saved_as(written, {**facts, **request}, arrays))
    elif how == 1:
        arrays = untrusted.changed_arrays(arrays, luck)
        path.write_bytes(untrusted.saved_as(written, facts, arrays))
    else:
        path.write_bytes(untrusted.saved_as(written, untrusted.changed(facts, luck), arrays))
    return outcome(lambda: untrusted.use(dp.load(path)))


def try_sent(sent, path, luck):
    message, two = luck.choice(sent)
    how = luck.randrange(4)
    if how == 0:
        message = untrusted.damaged(message, luck)
    elif how == 1:
        message = untrusted.resealed(untrusted.changed(json.loads(message), luck))
    else:
        plain, loads = json.loads(message), json.loads(two)
        plain["terms"] = loads["terms"] = untrusted.changed(plain["terms"], luck)
        message, two = untrusted.resealed(plain), untrusted.resealed(loads)
    path.write_bytes(message)
    second = path.with_name("second")
    second.write_bytes(two)
    return outcome(lambda: untrusted.use(dp.combine([path, second])))


def try_keys(cards, path, luck):
    at = luck.randrange(2)
    files = [cards[0].with_suffix(""), cards[1]]
    contents = [file.read_bytes() for file in files]
    contents[at] = changed_json(contents[at], luck)
    folder = path.with_name(f"keys-{luck.randrange(10**12)}")
    folder.mkdir()
    for name, content in zip(("key", "card"), contents, strict=True):
        (folder / name).write_bytes(content)
    words = {"site": "A", "protocol": "secure_sum", "verb": "mean", **untrusted.AGREED}
    words |= {"key": folder / "key", "cards": [cards[0], folder / "card"]}
    words["ledger"] = untrusted.ledger_of("A", folder)
    target = folder / "letter"
    return outcome(lambda: [str(dp.site_release("~ age", untrusted.ROWS, target, **words))])


def try_codebook(path, luck):
    plain = json.dumps(untrusted.BOOK.to_dict()).encode()
    path.write_bytes(changed_json(plain, luck))

    def load():
        book = dp.Codebook.load(path)
        return [repr(book), book._repr_html_()]

    return outcome(load)


def changed_json(content, luck):
    if luck.randrange(2):
        return untrusted.damaged(content, luck)
    return json.dumps(untrusted.changed(json.loads(content), luck)).encode()


def run(saved, sent, keys, folder, times, seed):
    luck, path, counter = untrusted.lucky(seed), folder / "file", Counter()
    for _ in range(times):
        counter["saved", try_saved(saved, path, luck)] += 1
        counter["sent", try_sent(sent, path, luck)] += 1
        counter["keys", try_keys(keys, path, luck)] += 1
        counter["codebook", try_codebook(path, luck)] += 1
    return counter


@pytest.mark.product
def test_changed_files_are_refused_or_can_be_used(saved, sent, keys, tmp_path):
    outcomes = run(saved, sent, keys, tmp_path, SMALL, 1)
    for kind in ("saved", "sent", "keys"):
        assert outcomes[kind, "FrameError"] > SMALL / 2
    assert outcomes["codebook", "CodebookError"] > SMALL / 2
    assert sum(number for (_, how), number in outcomes.items() if how == "loads") > 0


@pytest.mark.slow
def test_thousands_of_changed_files(saved, sent, keys, tmp_path, reduced):
    outcomes = run(saved, sent, keys, tmp_path, 250 if reduced else 1250, 2)
    assert outcomes.total() == (1000 if reduced else 5000)


@pytest.mark.product
def test_what_was_not_changed_can_be_used(saved, sent, tmp_path):
    for raw, _ in saved:
        (tmp_path / "a.nc").write_bytes(raw)
        assert outcome(lambda: untrusted.use(dp.load(tmp_path / "a.nc"))) == "loads"
    for number, contents in enumerate(sent):
        files = [tmp_path / f"{number}-{place}" for place in range(2)]
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        assert outcome(lambda files=files: untrusted.use(dp.combine(files))) == "loads"


@pytest.mark.product
def test_the_first_fault_of_a_saved_file_is_named(saved, tmp_path):
    written, facts, arrays = saved[0][1]
    kind, release = facts["release"]
    card = {**release["card"], "name": 3}
    for change, says in [
        ({"card": card}, "release.card.name: expected a text, found a whole number"),
        ({"rows": None}, "release.rows: not a number of rows"),
        ({"guarantee": ["ApproxDP", {"eps": -1.0, "delta": 1e-6}]}, "release.guarantee: .*eps"),
        ({"simulated": 1}, "release.simulated: expected true or false"),
    ]:
        second = {**facts, "release": [kind, {**release, **change}]}
        path = tmp_path / "a.nc"
        path.write_bytes(untrusted.saved_as(written, second, arrays))
        with pytest.raises(FrameError, match=says):
            dp.load(path)
