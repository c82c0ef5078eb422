"""The container file and the unit of systemd are what they claim, and the page's code runs."""

import ast
import configparser
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gates import serving

import dpmodels as dp
from dpmodels.datasets import randhie_codebook
from dpmodels.gateway.service import Service
from dpmodels.gateway.settings import demo_gate
from dpmodels.models.assumed_rows import assumed_rows
from dpmodels.shell.commands import OTHERS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "docs" / "deploy"
UNIT = DEPLOY / "dpmodels-gateway.service"
PAGES = ("running-a-gateway.md", "from-datashield.md")


def instructions():
    """The instructions of the container file: name and rest, of the last stage."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    stages = "\n".join(lines).split("FROM ")[1:]
    assert all(stage.startswith("python:3.") for stage in stages)
    return [tuple(line.split(" ", 1)) for line in stages[-1].splitlines()[1:]]


def setup():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def unit():
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(UNIT)
    return parser


def test_the_container_runs_as_nobody_of_importance_on_a_volume():
    parts = dict(instructions())
    assert int(parts["USER"]) > 999
    assert json.loads(parts["VOLUME"]) == [parts["WORKDIR"]]
    order = [name for name, _ in instructions()]
    assert order.index("USER") > max(i for i, name in enumerate(order) if name == "RUN")
    (extras,) = re.findall(r"\[([a-z,]+)\]\"", dict(instructions()[:1])["RUN"])
    assert set(extras.split(",")) <= set(setup()["options.extras_require"])


def test_the_commands_exist():
    scripts = setup()["options.entry_points"]["console_scripts"]
    started = shlex.split(unit()["Service"]["ExecStart"])
    for program, command in (json.loads(dict(instructions())["ENTRYPOINT"]), started[:2]):
        assert f"\n{Path(program).name} = " in scripts
        assert command in OTHERS
    assert json.loads(dict(instructions())["CMD"]) == started[2:]


def test_a_container_that_does_not_listen_is_not_healthy():
    options, _, check = dict(instructions())["HEALTHCHECK"].partition(" CMD ")
    assert all(re.fullmatch(r"--[a-z-]+=\d+s", option) for option in options.split())
    program, flag, code = json.loads(check)
    assert (program, flag, dict(instructions())["EXPOSE"]) == ("python", "-c", "8417")
    ast.parse(code)
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = code.replace("8417", str(server.getsockname()[1]))
        assert subprocess.run([sys.executable, "-S", "-c", code], check=False).returncode == 0
    failed = subprocess.run([sys.executable, "-S", "-c", code], check=False, capture_output=True)
    assert failed.returncode == 1


def test_the_unit_is_hardened(tmp_path):
    service = unit()["Service"]
    assert service["User"] not in ("", "root")
    assert service["LimitCORE"] == "0"
    assert f"/var/lib/{service['StateDirectory']}" == service["WorkingDirectory"]
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/gate/bin/dpmodels", shutil.which("true")))
    for command in (["verify"], ["security", "--offline=true", "--threshold=20"]):
        done = subprocess.run([analyze, *command, copy], check=False, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_files(page):
    text = (ROOT / "docs" / page).read_text()
    for file in re.findall(r"docs/deploy/([\w.-]+)", text):
        assert (DEPLOY / file).exists()


@pytest.mark.expensive
def test_the_calls_beside_those_of_datashield_are_valid():
    text = (ROOT / "docs" / "from-datashield.md").read_text()
    calls = re.findall(r"`(visits\.\w+\(.*?\))`", text)
    book = randhie_codebook()
    visits = dp.session(assumed_rows(book).rows(500), book, eps=10.0)
    for call in calls:
        if "Surv" not in call and "eps=" in call:
            eval(call, {"visits": visits})
    assert len(visits.results) > 9
    for formula in re.findall(r"in the formula: (.*) \|", text)[0].split("`")[1::2]:
        visits.plan([("mean", f"~ {formula.replace('x', 'mdvis + 1')}", {"eps": 0.1})])


@pytest.mark.product
def test_the_page_for_users_of_datashield_runs_on_the_demonstration(tmp_path, capsys):
    text = (ROOT / "docs" / "from-datashield.md").read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    gate = demo_gate(tmp_path / "demo")
    service = Service(replace(gate, server=replace(gate.server, tick_seconds=0.0)))
    token = service.state.issue_token("ann", 1)
    with serving(service) as url:
        code = code.replace("http://127.0.0.1:8417", url).replace('token="..."', f"token={token!r}")
        assert token in code
        exec(compile(code, "from-datashield.md", "exec"), {})
    assert "mdvis" in capsys.readouterr().out
