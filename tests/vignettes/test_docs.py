"""The page on ledgers runs from top to bottom, as an office would follow it."""

import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", flags=re.M | re.S)


@pytest.mark.slow
def test_the_page_on_ledgers_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert {kind for kind, _ in blocks} == {"sh", "python"}
    held: dict[str, object] = {}
    for kind, code in blocks:
        if kind == "sh":
            done = subprocess.run(code, shell=True, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        else:
            exec(compile(code, str(PAGE), "exec"), held)
