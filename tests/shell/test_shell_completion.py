"""A shell completes commands, options and files."""

import subprocess

import pytest

from dpmodels.__main__ import main


def test_bash_completes_an_option_of_a_verb_and_no_abbreviation_is_one(tmp_path, capsys):
    pytest.importorskip("shtab")
    assert main(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "complete").write_text(script)
    done = subprocess.run(["bash", "-n", str(tmp_path / "complete")], check=False)
    assert done.returncode == 0
    for command, option in (("quantile", "--probs"), ("site_key", "--out"), ("codebook", "draft")):
        assert any(option in line and f"_{command}" in line for line in script.splitlines())


def test_what_is_missing_is_named(monkeypatch, capsys):
    monkeypatch.setattr("dpmodels.shell.command_options.find_spec", lambda _: None)
    assert main(["--print-completion", "zsh"]) == 2
    assert "pip install dpmodels[shell]" in capsys.readouterr().err
