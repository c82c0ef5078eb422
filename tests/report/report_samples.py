"""Two reports: the one of the design, and one of names that mean something to a format."""

from dpmodels.report import Report, Row, Section

NAMES = (
    *("mdvis", "lncoins", "idp", "lpi", "fmde"),
    *("physlm", "disea", "hlthg", "hlthf", "hlthp"),
)
HEADS = ("PC1", "PC2", "PC3", "PC4 *")
LOADINGS = """
 0.141        |        |-0.203 |
-0.512 |0.486 |        | 0.118
-0.304 |      | 0.655 |
 0.447 |-0.391|        |-0.240
-0.380 | 0.623| 0.262 |
       |      |       | 0.733
 0.222 | 0.109|-0.114 | 0.305
       |-0.427| 0.574 |
 0.187 |      |-0.294 |-0.470
       |      |       | 0.199
"""

_importance = (
    Row("Standard deviation", ("0.4127", "0.2214", "0.1630", "0.071")),
    Row("Proportion of variance", ("0.611", "0.176", "0.095", "0.018")),
    Row("Cumulative proportion", ("0.611", "0.787", "0.882", "0.900")),
    Row(
        "95% noise interval (sd)",
        ("[0.4118, 0.4136]", "[0.2197, 0.2231]", "[0.1602, 0.1658]", "-"),
    ),
    Row("Expected cos2 with the non-private component", ("0.9999", "0.998", "0.981", "-")),
)
_lines = LOADINGS.strip("\n").splitlines()
_loadings = tuple(
    Row(name, tuple(cell.strip() for cell in line.split("|")))
    for name, line in zip(NAMES, _lines, strict=True)
)
PCA_REPORT = Report(
    title="Private principal components analysis",
    facts=(
        ("Formula", "~ " + " + ".join(NAMES)),
        ("Guarantee", "eps = 1, delta = 1e-06"),
        ("Mechanism", "gauss (exact lattice)"),
        ("Neighbours", "replace one row, n public"),
        ("Observations", "20,190 (public)"),
        ("Ledger", "1.00 of 2.00 eps spent"),
        ("Variables", "10, centred, scale = range"),
        ("Row norm", "2.24 (from the codebook)"),
    ),
    sections=(
        Section("Importance of components", HEADS, _importance),
        Section("Loadings (blank: |loading| < 0.1)", HEADS, _loadings),
    ),
    notes=(
        "* below the noise floor (variance 0.0052): not distinguishable from noise.",
        "Noise interval: privacy noise only. For the population use conf_int().",
        "Source: gauss, Dwork et al. (2014) in isometric coordinates; see dp.mechanisms.gauss",
    ),
)

# Names that mean something to every format.
_names = (
    "<script>alert(1)</script>",
    """quotes " and ' & amp;""",
    "pipe|star*under_score`tick`",
    r"a%b$c#d{e}f~g^h\i",
    "[0, 100]",
    "two\nlines\x1b[31m\u202e",
    "--x--",
)
_rows = tuple(Row(name, (f"-0.{i}", f"[-1.{i}, 2.{i}]")) for i, name in enumerate(_names))
_table = Section("Ti|tle <b>", ("h_1 <i>", "h|2 & $x$"), _rows)
NASTY_REPORT = Report(
    "T <u>&",
    (("Fo_rmula", "y ~ a|b + <c>"),),
    (_table,),
    ("* note_", "1. [x](y)"),
    "STAMP & <s>",
)
