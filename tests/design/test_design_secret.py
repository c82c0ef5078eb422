"""The secret by which persons are numbered: its length, and that it is new every time."""

import dpmodels as dp
from dpmodels.design.rows import SECRET_BYTES, _new_secret


def test_a_secret_has_all_of_its_bytes_and_is_new_every_time():
    secrets = [_new_secret() for _ in range(20)]
    assert {len(secret) for secret in secrets} == {SECRET_BYTES}
    assert SECRET_BYTES >= 16
    assert len(set(secrets)) == 20


def test_a_simulation_repeats_it():
    repeated = []
    for _ in range(2):
        with dp.simulation(seed=5):
            repeated.append(_new_secret())
    assert repeated[0] == repeated[1]
