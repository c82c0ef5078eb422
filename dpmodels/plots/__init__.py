"""Pictures: labelled arrays in, matplotlib axes out.

matplotlib is imported when a picture is drawn, never before. No picture shows a
row or a score of a row.
"""

from dpmodels.plots.bars import Panel, bars
from dpmodels.plots.biplot import biplot, scree
from dpmodels.plots.heat import heat, loadings

__all__ = ["Panel", "bars", "biplot", "heat", "loadings", "scree"]
