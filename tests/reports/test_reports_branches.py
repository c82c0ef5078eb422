"""Each branch of a printed note: what it is printed for, and that it is left out otherwise."""

import math
from types import SimpleNamespace as Fit

import numpy as np
import pandas as pd
import pytest
from folded import each

from dpmodels.errors import NotAvailable
from dpmodels.report.layout import WIDTH, wrap
from dpmodels.reports import coefficients, cov, groups, header, hist, lm


def printed(notes, start):
    """How many of the notes begin so; whichever branches gave them, each fits two lines."""
    assert [note for note in notes if len(wrap(note, WIDTH, indent=2)) > 2] == []
    assert [note for note in notes if "person" in note] == []
    return sum(note.startswith(start) for note in notes)


# Canonical correlations


def pairs(readable=(True, False), ridge=(0.0, 0.0), floor=0.12, cor=(0.5, 0.1), columns=3):
    return Fit(
        readable=pd.Series(readable),
        ridge=ridge,
        noise_floor=floor,
        cor=pd.Series(cor),
        xcenter=range(columns),
        ycenter=range(2),
    )


def test_loadings_are_described_where_some_can_be_read():
    loadings = "Loadings are correlations"
    unread = f"{cov.header.UNKNOWN}: not distinguishable from 0."
    for readable, is_some, is_unread in (
        ((True, True), 1, 0),
        ((True, False), 1, 1),
        ((False, False), 0, 1),
    ):
        notes = cov._cca_notes(pairs(readable))
        assert (printed(notes, loadings), printed(notes, unread)) == (is_some, is_unread)
        assert printed(notes, "All loadings are in xloadings") == is_unread


def test_a_ridge_a_floor_and_a_side_lost_in_noise():
    assert printed(cov._cca_notes(pairs()), "The noisy matrix of a side is singular") == 0
    for ridge in ((0.25, 0.0), (0.0, 0.5)):
        notes = cov._cca_notes(pairs(ridge=ridge))
        assert (
            printed(notes, "The noisy matrix of a side is singular: cor and xcoef are under") == 1
        )
        texts = [f"{value:.2f}" if value else "0" for value in ridge]
        assert printed(notes, f"Ridges of {texts[0]} and {texts[1]} were added") == 1
    assert (
        printed(cov._cca_notes(pairs()), "Noise alone makes canonical correlations of up to") == 1
    )
    assert printed(cov._cca_notes(pairs(floor=math.inf)), "Noise alone") == 0
    (only,) = cov._cca_notes(pairs(cor=(math.nan, math.nan)))
    assert only.startswith("One side has no direction above the noise")
    n_shown = header.SHOWN_VARIABLES
    assert printed(cov._cca_notes(pairs(columns=n_shown)), "1 more") == 0
    assert (
        printed(cov._cca_notes(pairs(columns=n_shown + 1)), "1 more of the columns: see xload") == 1
    )


# Linear models


ONE_RELEASE = {"is_reweighted": False, "residual_limit": math.nan, "scale": (0.25, 0.01)}


def linear(**fields):
    names = ["Intercept", "x"]
    of = {
        "identified": pd.Series([True, True], names),
        "params": pd.Series([1.0, 2.0], names),
        "bse": pd.Series([0.1, 0.2], names),
        "tvalues": pd.Series([10.0, 10.0], names),
        "sampled": True,
        "scale": 0.25,
        "df_resid": 90.0,
        "request": None,
        "has_heavy_tail": False,
        "model": Fit(weights=None),
        "release": Fit(meat=None, events=(), lumped=None, lumped_sd=None, units=None),
        "linear": Fit(equations=Fit(lifted=False), rsquared=(0.4, 0.02), **ONE_RELEASE),
    }
    return Fit(**{**of, **fields})


def test_residual_errors_of_a_linear_model():
    assert lm._sigma(linear()) == "0.500"
    unknown = linear(scale=math.nan, linear=Fit(scale=(0.05, 0.05)))
    # Two noise sds above the estimate.
    assert lm._sigma(unknown) == f"below {math.sqrt(0.15):.2f}"
    assert lm._sigma(linear(scale=math.nan, linear=Fit(scale=(-0.3, 0.05)))) == "lost in noise"
    assert lm._sigma(linear(df_resid=math.nan)) == "-"
    assert lm._rsquared(linear(), 0.4) == "0.400"
    assert lm._rsquared(linear(), math.nan) == "lost in noise"
    assert lm._rsquared(linear(df_resid=math.nan), math.nan) == "-"


def test_what_a_linear_models_errors_rest_on():
    assert "The residual variance is lost in noise" not in " ".join(lm._notes(linear()))
    assert printed(lm._notes(linear(scale=math.nan)), "The residual variance is lost in noise") == 1
    robust = Fit(person=None, most=0.012, sd=0.03)
    release = Fit(meat=robust, events=(), lumped=None, lumped_sd=None, units=None)
    assert printed(lm._notes(linear(scale=math.nan, release=release)), "The residual variance") == 0
    assert lm._variances(linear(release=release)) == (
        "unequal residual variances (HC1; one row: at most 1.2% of a variance; noise: 3%)"
    )
    release.meat = Fit(person="id", most=0.012, sd=0.03)
    assert lm._variances(linear(release=release)) == (
        "rows clustered by person (id; one person: at most 1.2% of a variance; noise: 3%)"
    )
    release.units = Fit(cap=42.0)
    assert lm._variances(linear(release=release)) == (
        "scores of units (linearised; one unit: at most 1.2% of a variance; noise: 3%)"
    )
    assert lm._variances(linear()) == "equal residual variances"


def test_an_intercept_that_rests_on_few_rows_is_noted():
    start = "Intercept: most rows are on one side"
    assert printed(lm._notes(linear()), start) == 0
    assert printed(lm._notes(linear(has_heavy_tail=True)), start) == 1
    hidden = pd.Series([False, True], ["Intercept", "x"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lm, "_unidentified", lambda _: [])
        notes = lm._notes(linear(has_heavy_tail=True, identified=hidden))
    assert printed(notes, start) == 0


def test_a_weighted_model_warns_of_incomplete_rows():
    start = "The number of complete weighted rows is not known"
    assert printed(lm._notes(linear()), start) == 0
    weighted = Fit(weights="w")
    assert printed(lm._notes(linear(model=weighted)), start) == 1
    unsampled = lm._notes(linear(model=weighted, sampled=False))
    assert printed(unsampled, start) == 0
    assert printed(unsampled, "Without the number of rows the residual variance, std err and") == 1


def test_a_ridge_along_hidden_directions_is_allowed_for():
    start = "Intervals allow for slopes along hidden directions"
    assert printed(lm._notes(linear()), start) == 0
    lifted = Fit(equations=Fit(lifted=True), **ONE_RELEASE)
    assert printed(lm._notes(linear(linear=lifted)), start) == 1


def test_a_score_test_is_named_where_z_is_not_the_ratio():
    assert lm._score_tested(linear()) == []
    # By two hundredths of the ratio, and by two hundredths of a half at the least.
    for statistic, is_other in ((10.19, False), (10.21, True), (9.79, True)):
        tvalues = pd.Series([statistic, 10.0], ["Intercept", "x"])
        assert (lm._score_tested(linear(tvalues=tvalues)) == ["Intercept"]) == is_other
        assert printed(lm._notes(linear(tvalues=tvalues)), "score z: z and P>|z| are") == is_other
    unidentified = pd.Series([False, True], ["Intercept", "x"])
    tvalues = pd.Series([20.0, 10.0], ["Intercept", "x"])
    assert lm._score_tested(linear(tvalues=tvalues, identified=unidentified)) == []


def test_merged_levels_are_listed():
    release = Fit(meat=None, events=(), lumped=(), lumped_sd=2.5)
    fit = linear(release=release, request=Fit(options={"lump": 50}))
    assert (
        "No factor has two levels with a noisy count below 50 (noise sd 2.5," in lm._lumped(fit)[0]
    )
    release.lumped = (("town", ("a", "b")), ("job", ("c", "d", "e")))
    note, detail = lm._lumped(fit)
    assert note.startswith('Levels with a noisy count below 50 are merged into "Other" (town: 2 ')
    assert "job: 3 levels" in note
    assert detail == "Merged: town: a, b; job: c, d, e."
    release.lumped += (("age", ("f", "g")),)
    assert "(3 factors;" in lm._lumped(fit)[0]
    assert lm._lumped(linear()) == []


# Models of counts and probabilities


def errors(clear=True, robust=0.25):
    equations = Fit(strength=2.5)
    law = Fit(clear=clear, equations=equations)
    return Fit(noise_law=law, robust=robust, lost_sizes=())


def bought(person=None):
    return Fit(
        person=person,
        meat=np.diag([6.0, 2.0]),
        bread=np.diag([2.0, 2.0]),
        meat_noise=Fit(diagonal=0.1),
    )


@pytest.mark.parametrize(
    ("curvature", "clip", "middle", "rest"),
    [
        (None, None, "squared gradients", "which is the same if the model is correct"),
        (bought(), None, "squared gradients", "which is the same if the model is correct"),
        (bought("id"), None, "squares of persons' gradients (id)", "as if all rows of a person we"),
        (bought(), 3.0, "squared gradients", "times a dispersion of 2.0: counts may vary mor"),
    ],
)
def test_the_covariance_is_described(curvature, clip, middle, rest):
    notes = coefficients._error_notes(
        errors(), 0, Fit(curvature=curvature, clip=clip, units=None, meat=None)
    )
    (note,) = (note for note in notes if note.startswith("Covariance: "))
    assert note.startswith(f"Covariance: 25% of the sandwich's middle matrix is {middle} (robust)")
    assert f"the rest curvature, {rest}" in note


def test_coefficients_that_are_not_identified_are_counted():
    release = Fit(curvature=None, clip=None, meat=None)
    for lost, text in ((1, "1 coefficient is not identified"), (2, "2 coefficients are not iden")):
        notes = coefficients._error_notes(errors(), lost, release)
        assert printed(notes, text) == 1
        assert printed(notes, "Intervals of identified coefficients allow for others that") == 1
    notes = coefficients._error_notes(errors(), 0, release)
    assert not any("identified" in note for note in notes)
    assert printed(notes, "The curvature is") == 0
    notes = coefficients._error_notes(errors(clear=False), 0, release)
    assert printed(notes, "The curvature is 2.5 times its noise along its weakest direction") == 1


def glm(**release):
    of = {"curvature": None, "clip": None, "ball": None, "gradient": None, "coefficient_sd": 0.1}
    return Fit(
        sandwich=None,
        identified=pd.Series([False, False]),
        why_not="not bought; use a larger budget",
        release=Fit(**{**of, **release}),
        call=Fit(clip=math.nan),
    )


def test_why_there_are_no_standard_errors():
    notes = coefficients.fit_notes(glm())
    assert notes[0] == "Standard errors: not bought."
    assert "noise: sd of the noise about the ridge estimate of these rows." in notes[1]
    assert notes[2] == "For standard errors use a larger budget."
    for unknown in ({"coefficient_sd": math.nan}, {"gradient": 0.2}):
        assert (
            "the size of their noise was not released" in coefficients.fit_notes(glm(**unknown))[1]
        )


def test_which_residuals_and_rows_were_cut():
    fit = glm()
    fit.call.clip = 2.0
    assert (
        printed(coefficients.fit_notes(fit), "Residuals beyond 2.00 in units of the response we")
        == 1
    )
    by_bound = coefficients.fit_notes(glm(clip=1.5))
    assert (
        printed(by_bound, "Residuals beyond 1.50 in units of the response, a released bound") == 1
    )
    requested = glm(clip=1.5)
    requested.call.clip = 1.5
    assert (
        printed(
            coefficients.fit_notes(requested),
            "Residuals beyond 1.50 in units of the response were clipped",
        )
        == 1
    )
    assert printed(coefficients.fit_notes(glm()), "Residuals") == 0
    assert printed(coefficients.fit_notes(glm()), "Rows farther than") == 0
    some_out = coefficients.fit_notes(glm(ball=Fit(shortened_sd=0.1)))
    assert printed(some_out, "Rows farther than the row norm") == 1
    none_out = coefficients.fit_notes(glm(ball=Fit(shortened_sd=0.0)))
    assert printed(none_out, "Rows farther than") == 0


# Headers


def moments(ball=None, name="gauss", estimate=None):
    release = header.MomentsRelease.__new__(header.MomentsRelease)
    for field, value in {"ball": ball, "info": Fit(name=name), "estimate": estimate}.items():
        object.__setattr__(release, field, value)
    return release


def test_which_rows_were_shortened():
    ball = {"rows": math.nan, "axes": None, "kept": 0.9, "kept_sd": 0.02}
    assert header._shortened(moments()) == ()
    (note,) = header._shortened(moments(Fit(**ball)))
    assert note.startswith("Rows farther than the row norm from a released centre were shortened")
    first, _ = header._shortened(moments(Fit(**{**ball, "axes": 1})))
    assert first.startswith("Rows outside an ellipsoid about a released centre were shortened")
    (note,) = header._shortened(moments(Fit(**{**ball, "rows": 900.0})))
    assert "downweighted and residuals truncated (up to about 13%), at thresholds" in note
    (note,) = header._shortened(moments(Fit(**{**ball, "rows": 900.0, "kept": math.nan})))
    assert note.startswith("Rows with extreme terms are downweighted and residuals truncated, at ")
    (note,) = header._shortened(moments(name="ellipsoid"))
    assert note.startswith("No ellipsoid was found")


def test_what_the_first_rounds_found():
    assert header._rounds_notes(moments(name="gauss")) == ()
    (note,) = header._rounds_notes(moments(name="rounds"))
    assert note.startswith("The first rounds found no smaller ball than the codebook's")
    assert header._rounds_notes(moments(Fit(), "rounds_pure")) == ()
    (note,) = header._rounds_notes(moments(Fit(), "rounds", 1))
    assert note.startswith("Row norms, as released, differ so much that increments")


def test_the_limit_of_the_row_norm_and_its_origin():
    call = Fit(row_norm=2.0, worst_case=2.0)
    assert header.row_norm(call) == "2.00 (from the codebook)"
    call.worst_case = 3.5
    assert header.row_norm(call) == "2.00 (longer rows are shrunk; codebook: 3.50)"
    ball = Fit(radius=1.25, shortened=0.031, shortened_sd=0.0007)
    assert header.row_norm(call, moments(ball)) == "1.25 (3.1 ± 0.1 % shortened)"
    ball.shortened_sd = 0.0004
    assert header.row_norm(call, moments(ball)) == "1.25 (3.10 ± 0.04 % shortened)"
    assert header.row_norm(call, Fit(ball=ball)) == "1.25 (3.10 ± 0.04 % left out)"
    all_in = Fit(radius=1.25, shortened=0.0, shortened_sd=0.0)
    assert header.row_norm(call, Fit(ball=all_in)) == "1.25 (no row can be longer)"
    ball.shortened = -0.01
    assert header.row_norm(call, moments(ball)).startswith("1.25 (0.00 ±")
    ball.shortened_sd = 0.49
    assert header.row_norm(call, moments(ball)) == "1.25 (0.0 ± 49.0 % shortened)"
    ball.shortened_sd = 0.5
    assert header.row_norm(call, moments(ball)) == "1.25 (% shortened: lost in noise)"
    assert header.row_norm(call, Fit(ball=ball)) == "1.25 (% left out: lost in noise)"


def test_complete_rows_are_printed_where_they_exceed_their_noise():
    assert header.complete_text(40.2, 10.0) == "40 rows (noise sd 10)"
    assert header.complete_text(39.8, 10.0) == "may be 0 rows (noise sd 10)"


@each(
    "n_shown, total, text", [(3, 3, None), (3, 4, "1 more of the groups: "), (3, 9, "6 more gro")]
)
def test_what_is_left_out_is_counted(n_shown, total, text):
    notes = header.omitted(n_shown, total, "groups", "tidy()")
    assert len(notes) == (text is not None)
    if notes:
        assert notes[0].startswith(text)


def test_ranges_other_than_from_zero_to_one_are_named():
    share = Fit(lower=0.0, upper=1.0, measured="p", date=False)
    assert header.range_note(share) == ()
    for lower, upper in ((0.0, 50.0), (-1.0, 1.0)):
        number = Fit(lower=lower, upper=upper, measured="x", date=False)
        (note,) = header.range_note(share, number)
        assert note.startswith(f"Values outside {lower:g} to {upper:g} (x) were clipped")


@each("value, text", [(math.nan, "-"), (0.5, "0.5000"), (1e-4, "0.0001"), (9e-5, "< 0.0001")])
def test_p_values_are_printed_to_four_digits(value, text):
    assert header.pvalue(value) == text


# Descriptions


def test_the_share_outside_a_released_range_is_an_upper_limit():
    facts = Fit(measured="x", lower=0.0, upper=9.0, date=False, cells=1, clustered=None)
    clipping = Fit(lower=1.0, upper=5.0, outside=0.02, outside_sd=0.01, points=None)
    release = Fit(held=clipping, info=Fit(name="rounds"), law="gaussian", noise_sd=4.0)
    release.adjacency = Fit(counts_persons=True)
    fit = Fit(release=release)
    (note,) = groups._range_notes(fit, facts)
    # The limit of a one-sided interval: 1.645 sds above.
    assert note.startswith("x: clipped to 1 to 5, a range released first. At most 3.6% of the rows")
    assert note.endswith("intervals add the tail cut off.")
    clipping.outside = -0.5
    (note,) = groups._range_notes(fit, facts)
    assert "At most 1.6% of the rows" in note
    facts.upper = 99.0  # Quantiles .996 and .95 are together 4.30 sds.
    (note,) = groups._range_notes(fit, facts)
    assert note.endswith("; up to 18 persons far beyond may be missed.")
    release.adjacency.counts_persons = False
    clipping.points, reason = (0.0, 0.1, 1.0), "as counts show rows far beyond a shorter range"
    (note,) = groups._range_notes(fit, facts)
    assert note == f"x: 1 to 5, {reason}; up to 18 rows far beyond may be missed."
    facts.lower, facts.upper = 1.0, 5.0
    assert groups._range_notes(fit, facts) == (f"x: 1 to 5, {reason}.",)
    unfound = groups._range_notes(Fit(release=Fit(held=None, info=Fit(name="rounds"))), facts)
    assert unfound[0] == "x: the declared range is kept, as no much narrower one was found."
    assert unfound[1:] == header.range_note(facts)
    of_gaussian = groups._range_notes(Fit(release=Fit(held=None, info=Fit(name="gaussian"))), facts)
    assert of_gaussian == header.range_note(facts)


def skewed(sd, mean=1.0, rows=100, noise=0.0):
    return Fit(
        params=pd.Series([mean]),
        counts=pd.Series([rows]),
        sd=pd.Series([sd]),
        bse=pd.Series([1.0]),
        bse_noise=pd.Series([noise]),
    )


def test_a_skewed_mean_of_few_rows_is_named():
    """By Cochran, rows of 25 times the squared skewness, which is s/m - m/s at least."""
    facts = Fit(labels=["wage"], lower=0.0, upper=100.0)
    for sd in (2.0, 3.0):
        limit = groups.COCHRAN * (sd - 1 / sd) ** 2
        assert groups.COCHRAN == 25
        assert len(groups._skewed_note(skewed(sd, rows=limit - 1), facts)) == 1
        assert groups._skewed_note(skewed(sd, rows=limit + 1), facts) == ()
    # Less spread than a mean has from 0 need not be skewed, and noise hides the shape.
    assert groups._skewed_note(skewed(0.9, rows=1), facts) == ()
    assert groups._skewed_note(skewed(3.0, rows=1, noise=0.71), facts) == ()
    assert len(groups._skewed_note(skewed(3.0, rows=1, noise=0.7), facts)) == 1
    # As near to the upper end it is as skewed, the other way.
    assert len(groups._skewed_note(skewed(3.0, mean=99.0, rows=1), facts)) == 1
    assert groups._skewed_note(skewed(3.0, mean=50.0, rows=1), facts) == ()


def quantiles(**fields):
    table = Fit(cells=2, lower=0.0, upper=1.0, measured="x", date=False, step=None, factors=())
    of = {
        "call": Fit(tables=[table]),
        "params": pd.DataFrame([[0.2, 0.5]]),
        "drawn": pd.DataFrame([[0.25, 0.5]]),
        "probs": (0.25, 0.5),
        "level": 0.95,
    }
    return Fit(**{**of, **fields})


def test_notes_of_quantiles():
    assert not groups._shifted(quantiles())
    assert printed(groups._quantile_notes(quantiles()), "Drawn at") == 0
    shifted = quantiles(drawn=pd.DataFrame([[0.27, 0.5]]))
    assert groups._shifted(shifted)
    assert (
        printed(groups._quantile_notes(shifted), "Drawn at: ranks nearer 0% or 100% would be lost")
        == 1
    )
    assert printed(groups._quantile_notes(quantiles()), f"{header.LOST}: too few rows") == 0
    lost = quantiles(params=pd.DataFrame([[math.nan, 0.5]]))
    assert (
        printed(groups._quantile_notes(lost), f"{header.LOST}: too few rows for this budget.") == 1
    )
    assert printed(groups._quantile_notes(quantiles()), "Conf. interval: noise and sampling") == 1
    assert printed(groups._quantile_notes(quantiles(level=None)), "Conf. interval") == 0


def test_small_counts_of_bins_may_be_noise():
    fit = Fit(ordered=Fit(unlawful="", cells=np.array([4.0, 30.0])))
    assert hist._lost_note(fit, 3.9) == ()
    (note,) = hist._lost_note(fit, 4.0)
    assert note == "Counts of single bins up to 4 may be noise alone."
    fit.ordered.unlawful = "the law of the runs is unknown."
    assert hist._lost_note(fit, 4.0) == (hist.RUNS_NOTE,)


def bins(breaks, starts, stops, groups=1):
    fit = Fit(_shape=(groups, len(breaks) - 1), breaks=np.array(breaks, float))
    return hist._hist_notes(fit, Fit(start=np.array(starts), stop=np.array(stops)))


def test_runs_and_widths_of_bins_are_described():
    notes = bins([0, 1, 2, 3, 4], [0, 1, 2, 3], [1, 2, 3, 4])
    assert printed(notes, "Bars: rows per unit") == 0
    assert printed(notes, "4 bins, shown in runs") == 0
    assert (
        printed(bins([0, 1, 2, 3, 4], [0, 2], [2, 4]), "4 bins, shown in runs of 2: see betw") == 1
    )
    assert (
        printed(bins([0, 1, 2, 4], [0, 1, 2], [1, 2, 3]), "Bars: rows per unit, as bins differ")
        == 1
    )
    groups = bins([0, 1, 2, 4], [0, 1, 2], [1, 2, 3], 2)
    assert printed(groups, "Bars: rows per unit") == 0  # Tables by group have no bars


def curve(end, times=(1, 2, 3, 4), spread=0.1):
    half = np.array([0.0, 0.06, 0.02, 0.01])[:end]
    return Fit(
        end=end,
        times=np.array(times, float),
        identified_times=np.array(times, float)[:end],
        counts=Fit(unordered=(0.5 - half, 0.5 + half)),
        survival=Fit(std_error=np.full(end, spread)),
    )


def curves(*of, strata=(), **time):
    return Fit(strata=list(strata), counted=Fit(curves=list(of), spec=Fit(time=Fit(**time))))


def test_where_curves_end_and_which_are_lost():
    assert hist._ends(curves(curve(4))) == ()
    (note,) = hist._ends(curves(curve(3)))
    assert note.startswith("The curve ends at 3: beyond, the number at risk is below five sds")
    (note,) = hist._ends(curves(curve(0)))
    assert note.startswith("Curves not reported, as the number at risk is below five sds")
    lost, ends = hist._ends(curves(curve(0), curve(2), curve(4), strata=("a", "b", "c")))
    assert lost.endswith(": a.")
    assert ends.startswith("Curves end early (b at 2): beyond,")
    (note,) = hist._ends(curves(curve(2), curve(3), strata=("a", "b")))
    assert note.startswith("Curves end early (a at 2, b at 3): beyond,")


def test_a_coarse_grid_is_named_at_its_worst_time():
    assert hist._order(curves(curve(4))) == ()
    note, detail = hist._order(curves(curve(4, spread=0.05)))
    assert note == (
        "Coarse grid: depending on the order of times within intervals, survival is 0.440 to "
        "0.560 at 2."
    )
    assert detail.startswith("Coarse grid: write more breaks")
    assert hist._order(curves(curve(4, spread=0.061))) == ()
    note, _ = hist._order(curves(curve(4, spread=0.05), strata=("a",)))
    assert note.endswith("0.440 to 0.560 at 2 (a).")


def test_times_above_the_declared_range():
    assert hist._above(curves(step=None, upper=9)) == (
        "Times above the declared range are censored at its end."
    )
    assert hist._above(curves(step=1, upper=9)) == "Times from 9 on are censored there."


def test_a_log_rank_test_is_printed_with_its_p_value_or_as_lost():
    def curves(number, pvalue, *, is_least=False):
        def logrank():
            if pvalue is None:
                raise NotAvailable("the variance is mostly noise")
            return Fit(pvalue=pvalue, df=2, statistic=7.256, is_least=is_least)

        return Fit(ncurves=number, logrank=logrank)

    assert hist._test(curves(1, 0.5)) == ()
    assert hist._test(curves(3, None)) == (("Log-rank", "lost in noise"),)
    for pvalue, text in ((0.0268, "p = 0.027"), (1e-4, "p = 0.00010"), (9e-5, "p < 0.0001")):
        assert hist._test(curves(3, pvalue)) == (("Log-rank", f"chi2(2) = 7.26, {text}"),)
    coarse = (("Log-rank", "chi2(2) at least 7.26, p at most 0.027"),)
    assert hist._test(curves(3, 0.0268, is_least=True)) == coarse


# Survey designs

OF_TWO = {
    "shift": [0.0, 0.0],
    "shift_sd": [0.1, 0.1],
    "effective_n": [90.0, 240.0],
    "deff": [1.5, 2.0],
}


def designed(excess=0.5, cap=12.0, units=False, strata="", **columns):
    table = {"weight": 200.0, "capped": 0.1, "capped_sd": 0.02, "shift": -0.3, "shift_sd": 0.04}
    table |= {"effective_n": 150.0, "deff": 1.8}
    fit = Fit(
        design=pd.DataFrame(
            {name: np.atleast_1d(value) for name, value in {**table, **columns}.items()}
        ),
        release=Fit(weights=Fit(has_excess=excess > 0, cap=cap)),
    )
    return header.design_notes(fit, Fit(sampled=Fit(units=units, strata=strata)))


def test_what_a_cap_cut_off_the_weights():
    """A single estimate is moved by a number; of several the table is in fit.design."""
    assert designed(excess=0)[0] == "No weights were capped."
    start = "Weights above 12.0 were capped, by 10.0 ± 2.0 % of all weight."
    moved = " This moved the estimate by -0.30 ± 0.040: put back, and in the errors."
    assert designed()[0] == start + moved
    assert designed(units=True)[0].startswith("Units of weight above 12.0 were capped, by 10.0")
    several = designed(weight=[100.0, 300.0], capped=[0.4, 0.0], capped_sd=[0.04, 0.0], **OF_TWO)
    assert several[0].startswith("Weights above 12.0 were capped, by 10.0 ± 1.0 % of all weight.")
    assert several[0].endswith("see fit.design.")
    for hidden in ({"capped_sd": 0.5}, {"capped": math.nan}):
        assert "Noise hides how much of the weight this cut off" in designed(**hidden)[0]
    assert "Noise hides" not in designed(capped_sd=0.49)[0]


def test_what_a_design_does_to_the_errors():
    assert designed()[1] == "Design effect 1.8, effective n 150: linearised errors."
    several = designed(weight=[1.0, 1.0], capped=[0.0, 0.0], capped_sd=[0.0, 0.0], **OF_TWO)
    assert several[1] == "Design effect 1.5 to 2.0, effective n 90 to 240: linearised errors."
    assert designed(units=True)[1].endswith("with replacement; effective number of units 150.")
    assert len(designed(effective_n=math.nan)) == 1
    assert printed(designed(), "Strata are ignored") == 0
    assert printed(designed(strata="h"), "Strata are ignored in errors where noise hides them") == 1


def test_notes_of_a_design_are_left_out_without_one():
    assert header.design_notes(Fit(release=Fit(weights=None)), Fit(sampled=None)) == ()
    assert header.design_notes(Fit(release=Fit(weights=None)), Fit(sampled=Fit())) == ()
