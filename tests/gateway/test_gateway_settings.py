"""The settings of a gateway are checked before anything is opened."""

import pytest
from gates import gate, write_table

from dpmodels.__main__ import main
from dpmodels.errors import ArgumentError, BudgetError, DPModelsError, FrameError
from dpmodels.gateway.settings import demo_gate, gate_of, read_gate
from dpmodels.privacy import ApproxDP

TABLE = {"data": "visits.csv", "codebook": "visits.json", "eps": 1.0}


def test_the_defaults_serve_this_machine_only(tmp_path):
    settings = gate(tmp_path)
    assert (settings.server.host, settings.server.requests_per_minute) == ("127.0.0.1", 300)
    assert settings.folder == tmp_path / "gate"
    assert not settings.folder.exists()
    assert settings.analysts["ann"].purse == "ann"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tables": {}}, "no table is declared"),
        ({"tables": {"a/b": TABLE}}, "letters, digits and underscores"),
        ({"tables": {"t": {**TABLE, "epss": 1}}}, "'epss' is not expected .did you mean 'eps'"),
        ({"tables": {"t": {**TABLE, "database": "sqlite:///x"}}}, "either data"),
        ({"tables": {"t": {**TABLE, "workers": 0}}}, "workers"),
        ({"tables": {"t": {**TABLE, "eps": "much"}}}, "eps"),
        ({"tables": {"t": {**TABLE, "purses": {"ann": 2.0}}}}, "at most the table's total"),
        ({"gate": {"tick_seconds": -1}, "tables": {"t": TABLE}}, "tick_seconds"),
        ({"gates": {}, "tables": {"t": TABLE}}, "did you mean 'gate'"),
        ({"tables": {"t": TABLE}, "analysts": {"ann": {"curator": 3}}}, "curator"),
    ],
)
def test_a_fault_is_named(tmp_path, changed, message):
    with pytest.raises(DPModelsError, match=message):
        gate_of(changed, tmp_path)


def test_a_reserved_purse_that_does_not_fit_is_refused(tmp_path):
    purses = {"ann": {"amount": 0.6, "reserved": True}, "bob": {"amount": 0.6, "reserved": True}}
    with pytest.raises(DPModelsError, match="reserved by purses"):
        gate_of({"tables": {"t": {**TABLE, "purses": purses}}}, tmp_path)
    with pytest.raises(BudgetError, match="cannot be reserved"):
        gate_of({"tables": {"t": {**TABLE, "delta": 1e-6, "purses": purses}}}, tmp_path)


def test_a_file_is_read_and_its_paths_are_relative_to_it(tmp_path):
    write_table(tmp_path)
    (tmp_path / "gate.toml").write_text(
        '[tables.visits]\ndata = "visits.csv"\ncodebook = "visits.json"\neps = 1\ndelta = 1e-6\n'
    )
    settings = read_gate(tmp_path / "gate.toml")
    assert settings.tables["visits"].data == str(tmp_path / "visits.csv")
    assert settings.tables["visits"].guarantee == ApproxDP(1.0, 1e-6)
    (tmp_path / "broken.toml").write_text("[tables")
    with pytest.raises(FrameError, match="cannot be read as TOML"):
        read_gate(tmp_path / "broken.toml")


def test_a_purse_keeps_its_amount(tmp_path):
    settings = gate(tmp_path)
    settings.folder.mkdir()
    assert [p.name for p in settings.open_ledger("visits").purses] == ["ann", "bob"]
    settings.open_ledger("visits")
    with pytest.raises(ArgumentError, match="cannot become 0"):
        gate(tmp_path, amount=0.5).open_ledger("visits")


def test_the_demonstration_has_a_public_table(tmp_path):
    settings = demo_gate(tmp_path / "demo")
    assert settings.tables["visits"].is_csv
    assert set(settings.purses["visits"]) == {"ann", "bob"}


def test_tokens_are_issued_by_the_settings_that_a_command_names(tmp_path, monkeypatch, capsys):
    write_table(tmp_path)
    (tmp_path / "gate.toml").write_text(
        '[tables.visits]\ndata = "visits.csv"\ncodebook = "visits.json"\neps = 1\n[analysts.zoe]\n'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "gate.toml", "--issue", "zoe"]) == 0
    assert len(capsys.readouterr().out.split()) == 1
    assert not (tmp_path / "gate-demo").exists()
