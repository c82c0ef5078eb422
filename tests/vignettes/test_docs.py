"""The page on ledgers runs from top to bottom, as an office would follow it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", flags=re.M | re.S)


def script(blocks):
    """Return the page as one program; lines for the shell are run by it."""
    shell = "subprocess.run({!r}, shell=True, check=True)\n"
    return "import subprocess\n" + "\n".join(
        shell.format(code) if kind == "sh" else code for kind, code in blocks
    )


@pytest.mark.slow
def test_the_page_on_ledgers_runs(tmp_path):
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert {kind for kind, _ in blocks} == {"sh", "python"}
    page = tmp_path / "page.py"
    page.write_text(script(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", page],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
