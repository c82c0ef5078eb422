"""What is public about rows that are bound to a formula, as texts that can be compared."""

from __future__ import annotations

from dpmodels.codebook import Categorical, Codebook
from dpmodels.design.scaling import Scaling
from dpmodels.formula.tally import Tally


def declared_facts(formula: str, codebook: Codebook) -> dict[str, str]:
    """State a formula and the declarations it uses; labels and units are no part of them."""
    declared = {
        f"variable {name!r}": repr(list(variable.levels))
        if isinstance(variable, Categorical)
        else f"{variable.lower!r} to {variable.upper!r}"
        for name, variable in codebook.items()
    }
    return {"formula": formula, **declared}


def scaling_facts(names: tuple[str, ...], scaling: Scaling) -> dict[str, str]:
    """State how coded columns are brought into the ball."""
    ends = zip(names, scaling.centre.tolist(), scaling.scale.tolist(), strict=True)
    columns = {f"scaling of {name!r}": f"(x - {at!r}) / {by!r}" for name, at, by in ends}
    norm = "unit" if scaling.unit else repr(float(scaling.row_norm))
    return {**columns, "row_norm": norm}


def table_facts(tallies: tuple[Tally, ...]) -> dict[str, str]:
    """State what rows are counted by."""
    facts = {}
    for number, tally in enumerate(tallies, start=1):
        factors = [f"{factor.code}: {list(factor.levels)!r}" for factor in tally.factors]
        own = tally.measured
        powers = [] if own is None else [f"{own.code} in {own.lower!r} to {own.upper!r}"]
        powers += [f"powers to {tally.degree}"] if tally.degree else []
        facts[f"table {number}"] = "; ".join([*factors, *powers])
    return facts
