"""Three sites that exchange rounds by files: their rows, keys, ledgers and turns."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import dpmodels as dp
from dpmodels.request import canonical
from dpmodels.sites.message import answer_file, message_file

SITES = ("A", "B", "C")
BOOK = dp.codebook(a=(-10, 10), b=(-10, 10))
AGREED: dict[str, Any] = {
    "session": "trial 7",
    "protocol": "secure_sum",
    "codebook": BOOK,
    "verb": "moments",
    "eps": 1.0,
    "delta": 1e-6,
}
FORMULA = "~ a + b"


def rows_of(site: str, n_rows: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(ord(site))
    return {"a": rng.normal(3, 0.5, n_rows), "b": rng.normal(-1, 0.2, n_rows)}


@dataclass
class Study:
    """A folder of all sites, and one of each."""

    top: Path
    sites: tuple[str, ...] = SITES

    @property
    def folder(self) -> Path:
        return self.top / "study"

    def key(self, site: str) -> Path:
        return self.top / site / "site.key"

    def ledger(self, site: str) -> dp.Ledger:
        return dp.Ledger.open(self.top / site / "site.ledger")

    @property
    def cards(self) -> list[Path]:
        return [Path(f"{self.key(site)}.card") for site in self.sites]

    def turn(self, site: str, data: Any = None, **changes: Any) -> Path:
        """Let a site take its turn, on the agreed terms but for changes."""
        words = {"key": self.key(site), "cards": self.cards, **AGREED, **changes}
        words = {"ledger": self.ledger(site), **words}
        formula, folder = words.pop("formula", FORMULA), words.pop("folder", self.folder)
        data = rows_of(site) if data is None else data
        return dp.site_release(formula, data, folder, site=site, **words)

    def turns(self, **changes: Any) -> list[Path]:
        return [self.turn(site, **changes) for site in self.sites]

    def combine(self) -> Any:
        return dp.combine(self.folder)

    def finish(self, **changes: Any) -> Any:
        """Take all turns that are left; return the result."""
        for _ in range(30):
            self.turns(**changes)
            fit = self.combine()
            if not isinstance(fit, dp.sites.OpenRound):
                return fit
        raise AssertionError("an exchange without an end")

    def charges(self) -> list[int]:
        """How many charges of each site cost anything."""
        entries = (self.ledger(site).entries for site in self.sites)
        return [sum(bool(entry.events) for entry in value) for value in entries]

    def shown(self) -> dict[str, bytes]:
        """All messages and answers, without what a killed process left unnamed."""
        return {file.name: file.read_bytes() for file in sorted(self.folder.glob("[!.]*"))}

    def message(self, number: int, site: str) -> Path:
        return message_file(self.folder, number, site)

    def answer(self, number: int) -> Path:
        return answer_file(self.folder, number)


def study(
    top: Path, sites: tuple[str, ...] = SITES, adjacency: Any = "replace", **unit: Any
) -> Study:
    """Make the folders, keys and ledgers of an exchange that has not started."""
    study = Study(top, sites)
    study.folder.mkdir(parents=True)
    for site in sites:
        (top / site).mkdir()
        dp.site_key(site, study.key(site))
        words = {"eps": 3.0, "delta": 1e-6, "adjacency": adjacency, "new": True, **unit}
        dp.Ledger.open(top / site / "site.ledger", **words)
    return study


def sealed(plain: dict[str, Any]) -> bytes:
    """The file of a changed message, with a digest that fits."""
    plain = {name: value for name, value in plain.items() if name != "sha256"}
    digest = sha256(canonical(plain)).hexdigest()
    return json.dumps({**plain, "sha256": digest}, indent=1).encode()


def rewrite(file: Path, **changes: Any) -> None:
    """Change parts of a message, or of its terms, and sign it again."""
    plain = json.loads(file.read_bytes())
    for name, value in changes.items():
        part = plain["terms"] if name in plain["terms"] else plain
        part[name] = value
    file.write_bytes(sealed(plain))
