"""Record the stored list again, after a release changes on purpose."""

import sys
from collections import Counter
from pathlib import Path

REPORTS_OF_A_VERB = 3
HERE = Path(__file__).parent
CONTRACTS = HERE.parent / "contracts"
sys.path[:0] = [str(HERE), str(HERE.parent), str(CONTRACTS)]

import numpy as np  # noqa: E402
from contract_cases import CASES  # noqa: E402
from golden_cases import DELICATE, SEEDS, cases, fit_of, unit_cases  # noqa: E402
from released_numbers import numbers_of, public_numbers, tidy_numbers  # noqa: E402
from stored_cases import key_of, plan_numbers, release_numbers  # noqa: E402

from dpmodels.errors import DPModelsError  # noqa: E402

if __name__ == "__main__":
    releases, estimates, reports, full_reports = {}, {}, [], []
    printed, kinds = Counter(), set()
    for key, (form, seed) in cases().items():
        try:
            fit = fit_of(form, seed)
        except DPModelsError as error:
            print(f"not listed: {key}: {type(error).__name__}")
            continue
        releases[key] = np.array(list(numbers_of(fit.release)))
        if seed == SEEDS[0]:
            # All that the first result of a class and a kind of release says, and the table of
            # estimates of the others.
            kind = type(fit), type(fit.release)
            is_repeated = kind in kinds or key in DELICATE
            methods = {"tidy": tidy_numbers(fit)} if is_repeated else public_numbers(fit)
            if not is_repeated:
                kinds.add(kind)
                full = fit.summary(notes="all", reading=True)
                full_reports.append(f"#### {key}\n{full.as_text()}\n")
            estimates |= {f"{key} {name}": numbers for name, numbers in methods.items()}
        printed[form.verb.name] += seed == SEEDS[0]
        if seed == SEEDS[0] and printed[form.verb.name] <= REPORTS_OF_A_VERB:
            reports.append(f"#### {key}\n{fit.summary().as_text()}\n")
    np.savez_compressed(HERE / "releases.npz", **releases)
    np.savez_compressed(HERE / "estimates.npz", **estimates)
    (HERE / "reports.txt").write_text("\n".join(reports), "utf-8")
    unit_reports = {
        key: fit_of(*case).summary(notes="all", reading=True).as_text()
        for key, case in unit_cases().items()
    }
    texts = (f"#### {key}\n{text}\n" for key, text in unit_reports.items())
    (HERE / "unit_reports.txt").write_text("\n".join(texts), "utf-8")
    (HERE / "full_reports.txt").write_text("\n".join(full_reports), "utf-8")
    print(f"{len(releases)} releases, {len(reports)} reports")
    mechanisms = {key_of("release", case): np.array(release_numbers(case)) for case in CASES}
    mechanisms |= {key_of("plan", case): np.array(plan_numbers(case)) for case in CASES}
    np.savez_compressed(CONTRACTS / "mechanisms.npz", **mechanisms)
