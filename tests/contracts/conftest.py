"""Laws are plain functions in modules of their own; their assertions explain themselves too."""

import pytest

pytest.register_assert_rewrite(
    "law_answer",
    "law_arguments",
    "law_canary",
    "law_info",
    "law_ingestion",
    "law_ledger",
    "law_neighbours",
    "law_noise",
    "law_places",
    "law_plan",
    "law_repeat",
    "law_rows",
    "law_secrets",
    "law_sensitivity",
    "law_sites",
    "law_sites_sent",
    "law_sums",
    "law_tracebacks",
)
