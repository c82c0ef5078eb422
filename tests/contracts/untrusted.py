"""Files as an enemy would change them, and all that can be done with what they load as."""

import copy
import inspect
import json
import random
import warnings
from pathlib import Path

import numpy as np
from verb_entry import BOOK, ROWS, fitted
from verbs import forms

import dpmodels as dp
from dpmodels.errors import ArgumentError, DPModelsError, NotAvailable
from dpmodels.results.store import file_bytes, open_saved
from dpmodels.sites.message import digest

APPROX = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}
AGREED = {**APPROX, "session": "s"}
ODD = [
    *(None, True, False, 0, 1, -1, 2, 10**30, -(10**30), 1e308, -1e308, 1e-308, 0.5),
    *(float("nan"), float("inf"), "", "x", "\x1b[31mred", "\ud800", "nan", "replace"),
    *([], {}, [[]], ["x"], [1, 2, 3], {"x": 1}, {"\x1b]0;t\x07": 1}),
]

# Of every kind, in the first format of files.
FORMAT_1 = sorted((Path(__file__).parents[1] / "results" / "format_1").glob("*.nc"))


def results():
    """One result of every format."""
    yield from map(fitted, forms("forged").values())
    moments = fitted(forms("stored")["moments ~ age + wage"])
    yield from (moments.cov("~ wage + age"), moments.lm("age ~ wage"), moments.cov().pca(1))


def ledger_of(site, folder):
    """A new ledger in a file, for one letter."""
    return dp.Ledger.open(folder / f"{site}.ledger", eps=2.0, delta=1e-6, new=True)


def letters(folder):
    """Letters of two sites, by protocol and verb: lists of bytes that combine."""
    for number, form in enumerate(forms("sent").values()):
        protocol = form.options["protocol"]
        folder_of_file = folder / str(number)
        folder_of_file.mkdir()
        keyed = protocol in ("secure_sum", "cape")
        cards = [dp.site_key(site, folder_of_file / f"{site}.key") for site in "AB" if keyed]
        files = []
        for site in "AB":
            key = {"key": folder_of_file / f"{site}.key", "cards": cards} if keyed else {}
            key |= {"ledger": ledger_of(site, folder_of_file)} if keyed else {}
            files.append(folder_of_file / f"{site}.json")
            words = {"site": site, "protocol": protocol, "verb": form.verb.short, **AGREED, **key}
            dp.site_release(form.formula, ROWS, files[-1], **words)
        yield [file.read_bytes() for file in files]


def places(plain, way=()):
    """Every place in a plain value."""
    yield way
    if isinstance(plain, dict):
        for name in plain:
            yield from places(plain[name], (*way, name))
    elif isinstance(plain, list):
        for number, facts in enumerate(plain[:6]):
            yield from places(facts, (*way, number))


def changed(plain, luck):
    """A plain value with one place dropped, renamed, doubled, nested, of another type or value."""
    facts = copy.deepcopy(plain)
    *way, last = luck.choice([way for way in places(facts) if way])
    at = facts
    for step in way:
        at = at[step]
    how = luck.randrange(8)
    if how == 0:
        del at[last]
    elif how == 1 and isinstance(at, dict):
        at[luck.choice(["x", "", "\x1b[2J", "__class__"])] = at.pop(last)
    elif how == 2:
        at[last] = [at[last]]
    elif how == 3:
        at[last] = {"x": at[last]}
    elif how == 4 and isinstance(at[last], int | float):
        at[last] = luck.choice([-at[last], at[last] * 1e9, at[last] + 1, at[last] / 3])
    elif how == 5 and isinstance(at, dict):
        at[last] = at[luck.choice(list(at))]
    else:
        at[last] = luck.choice(ODD)
    return facts


def damaged(content, luck):
    """Bytes flipped, cut off, or doubled."""
    damaged_bytes = bytearray(content)
    how = luck.randrange(4)
    at = luck.randrange(len(damaged_bytes))
    if how < 2:
        damaged_bytes[at] ^= 1 << luck.randrange(8)
    elif how == 2:
        del damaged_bytes[at:]
    else:
        damaged_bytes[at:at] = damaged_bytes[luck.randrange(len(damaged_bytes)) :][:64]
    return bytes(damaged_bytes)


def changed_arrays(arrays, luck):
    """Arrays with one of them dropped, renamed, of another shape or with other values."""
    arrays_damaged = dict(arrays)
    if not arrays_damaged:
        return {"x": (("x",), np.ones(1))}
    name = luck.choice(sorted(arrays_damaged))
    dims, copied = arrays_damaged[name]
    how = luck.randrange(6)
    if how == 0:
        del arrays_damaged[name]
    elif how == 1:
        arrays_damaged[luck.choice(["x", "total", "estimate"])] = arrays_damaged.pop(name)
    elif how == 2:
        arrays_damaged[name] = (tuple(f"{dim}_2" for dim in dims), np.concatenate([copied, copied]))
    else:
        copied = copied.copy()
        value = luck.choice([np.nan, np.inf, 1e300, -1e300, 1e149, -1e149, 0.0, -1.0, 1e-300])
        copied[(...,) if how == 3 else tuple(luck.randrange(size) for size in copied.shape)] = value
        arrays_damaged[name] = (dims, copied)
    return arrays_damaged


def resealed(plain):
    """The file of a letter whose digests fit again, as far as it has any."""
    if isinstance(plain, dict):
        terms = plain.get("terms")
        if "codebook_sha256" in plain and isinstance(terms, dict) and "codebook" in terms:
            plain["codebook_sha256"] = digest(terms["codebook"])
        plain.pop("sha256", None)
        plain["sha256"] = digest(plain)
    return json.dumps(plain).encode()


def unsealed(path):
    """What a saved file is made of."""
    from scipy.io import netcdf_file

    saved = open_saved(path)
    with netcdf_file(path, "r", mmap=False) as file:
        dims = {name: variable.dimensions for name, variable in file.variables.items()}
    arrays = {name: (dims[name], array) for name, array in saved.arrays.items()}
    return saved.format, saved.facts, arrays


def saved_as(written, facts, arrays):
    """The file of facts and arrays, whatever they are."""
    return file_bytes(written, json.dumps(facts), arrays)


def use(fit):
    """Print a result and call what can be called without words; return the texts."""
    texts = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        report = fit.summary()
        for way in ("as_text", "as_html", "as_latex", "as_markdown"):
            texts.append(getattr(report, way)())
        texts.append(repr(fit))
        for name in dir(type(fit)):
            if name.startswith("_") or name in ("save", "plot") or name.startswith("plot_"):
                continue
            try:
                method = getattr(fit, name)
                if inspect.ismethod(method) and not required(method):
                    method = method()
                texts.append(str(method))
            except (NotAvailable, ArgumentError, DPModelsError):
                continue
    return texts


def required(method):
    """Words that a method cannot do without."""
    return [
        word
        for word in inspect.signature(method).parameters.values()
        if word.default is word.empty and word.kind not in (word.VAR_KEYWORD, word.VAR_POSITIONAL)
    ]


def lucky(seed):
    return random.Random(seed)
