"""Messages and answers that are changed, replayed, reordered or mixed: typed errors, no release."""

import json
import random
import shutil

import pytest
from exchange_cases import Study, sealed, study

import dpmodels as dp
from dpmodels.errors import DPModelsError

SEED = 31
# Of each message: what is changed although its digest fits. Another number of rows, within what a
# site can have, is not noticed: whoever may write the files can write it.
FIELDS = {
    "site": ("B", "C", "D", ""),
    "rows": (-1, 2**60, None, "300"),
    "shape": ([1, 6], [2, 5], [6, 2], [], [2, 10**6]),
    "kind": ("floats", "integers"),
    "values": ("", "AAAA", "%%%"),
    "number": (1, None),
    "simulated": (True, "yes"),
    "format": ("dpmodels.site/2", None),
    "codebook_sha256": ("0" * 64,),
    "round": (0, 2, -1, 10**30, "1", None),
    "answers": ("0" * 64, 3),
    "session": ("trial 8", ""),
    "formula": ("~ a", "~ b + a", "~ a + b + a:b"),
    "version": ("0.0.1", ""),
    "basis": ("0" * 64, ""),
    "verb": ("pca", "mean", "no verb"),
    "keys": ({}, {"A": "00" * 32}),
    "adjacency": ("add-remove", "unknown"),
    "protocol": ({"name": "cape", "colluders": 1}, {"name": "secure_sum", "colluders": 0}, {}),
    "clipping": (False, "yes", None),
    "present": ([], ["A"], ["B", "A", "C", "D"], ["A", "B", "C"], ["A", "B", "C", "X"], "A", None),
    "guarantee": (["ZCDP", {"rho": 0.5}], ["ApproxDP", {"eps": 9.0, "delta": 1e-6}]),
}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Two studies whose sites sent their messages of the first round."""
    pair = []
    for name in ("one", "two"):
        site_study = study(tmp_path_factory.mktemp(name))
        site_study.turns()
        pair.append(site_study)
    return pair


def quorums_of(folder, rounds):
    """Two studies of a quorum, whose last of some rounds waits for the aggregator alone."""
    pair, words = [], {"protocol": dp.sites.SecureSum(dropouts=1)}
    for name in ("one", "two"):
        site_study = study(folder / name, tuple("ABCD"))
        for turn in range(2 * rounds):
            site_study.turns(**words)
            if turn < 2 * rounds - 1:
                site_study.combine()
        pair.append(site_study)
    return pair


@pytest.fixture(scope="module")
def quorums(tmp_path_factory):
    return quorums_of(tmp_path_factory.mktemp("first"), 1)


@pytest.fixture(scope="module")
def second_rounds(tmp_path_factory):
    return quorums_of(tmp_path_factory.mktemp("second"), 2)


def cut(content: bytes, source: random.Random) -> bytes:
    return content[: source.randrange(len(content))]


def flipped(content: bytes, source: random.Random) -> bytes:
    """One byte is another one, where it is not the space between two parts."""
    places = [at for at, byte in enumerate(content) if byte > 32]
    at = source.choice(places)
    return content[:at] + bytes([content[at] ^ source.choice((1, 2, 4))]) + content[at + 1 :]


def field_changed(content: bytes, source: random.Random) -> bytes:
    """A part is another one, and the digest fits."""
    plain = json.loads(content)
    name = source.choice([name for name in FIELDS if name in plain or name in plain["terms"]])
    part = plain["terms"] if name in plain["terms"] else plain
    part[name] = source.choice([value for value in FIELDS[name] if value != part[name]])
    return sealed(plain)


def part_removed(content: bytes, source: random.Random) -> bytes:
    plain = json.loads(content)
    part = plain["terms"] if source.random() < 0.5 else plain
    del part[source.choice([name for name in part if name != "sha256"])]
    return sealed(plain)


def spoilt(folder, ours: dict, reference: dict, source: random.Random, number: int) -> str:
    """Write the files of a study with one of a round wrong; say what was done."""
    of_round = [name for name in sorted(ours) if name.split("-")[1][:1] == str(number)]
    name = source.choice(of_round)
    second = source.choice([value for value in of_round if value != name])
    kinds = {
        "cut": lambda: cut(ours[name], source),
        "flipped": lambda: flipped(ours[name], source),
        "changed": lambda: field_changed(ours[name], source),
        "removed": lambda: part_removed(ours[name], source),
        "mixed": lambda: reference[name],
        "swapped": lambda: ours[second],
        "empty": lambda: b"",
    }
    if number > 1:
        kinds["replayed"] = lambda: ours[name.replace(f"-{number}", f"-{number - 1}", 1)]
    kind = source.choice(sorted(kinds))
    for file, content in ours.items():
        (folder / file).write_bytes(content)
    (folder / name).write_bytes(kinds[kind]())
    if kind == "swapped":
        (folder / second).write_bytes(ours[name])
    return f"{kind} {name}"


def tamper(studies: list[Study], tmp_path, times: int, round_number: int = 1) -> None:
    """Whoever combines refuses each, and writes no answer."""
    source = random.Random(SEED)
    ours, reference = (study.shown() for study in studies)
    ours.pop(f"answer-{round_number}.json", None)
    for number in range(times):
        folder = tmp_path / str(number)
        folder.mkdir()
        what = spoilt(folder, ours, reference, source, round_number)
        with pytest.raises(DPModelsError):
            pytest.fail(f"{what}: {dp.combine(folder)}")
        assert len(list(folder.glob("answer-*"))) == round_number - 1, what
        shutil.rmtree(folder)


@pytest.mark.product
def test_changed_messages_are_refused(studies, tmp_path):
    tamper(studies, tmp_path, 200)


@pytest.mark.product
def test_changed_files_of_a_quorum_are_refused(quorums, tmp_path):
    assert len(quorums[0].shown()) == 4 + 1 + 4
    tamper(quorums, tmp_path, 100)


@pytest.mark.product
def test_changed_files_of_a_later_round_of_a_quorum_are_refused(second_rounds, tmp_path):
    assert len(second_rounds[0].shown()) == 2 * 9 + 1
    tamper(second_rounds, tmp_path, 100, 2)


@pytest.mark.slow
def test_two_thousand_changed_files_of_a_quorum_are_refused(quorums, tmp_path):
    tamper(quorums, tmp_path, 2_000)


@pytest.mark.slow
def test_two_thousand_changed_files_of_a_later_round_are_refused(second_rounds, tmp_path):
    tamper(second_rounds, tmp_path, 2_000, 2)


@pytest.mark.slow
def test_two_thousand_changed_messages_are_refused(studies, tmp_path):
    tamper(studies, tmp_path, 2_000)
