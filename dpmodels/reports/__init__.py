"""How results print: one report per kind of result, registered with ``results.base.report_of``.

No result imports this package; ``models/release.py`` imports it at the first print, so that
everything that a verb returns or ``load`` reads can be printed.
"""

from dpmodels.reports import coefficients as coefficients
from dpmodels.reports import comparison as comparison
from dpmodels.reports import counts as counts
from dpmodels.reports import cov as cov
from dpmodels.reports import etable as etable
from dpmodels.reports import groups as groups
from dpmodels.reports import hist as hist
from dpmodels.reports import lm as lm
from dpmodels.reports import pca as pca
from dpmodels.reports import plan as plan
from dpmodels.reports import select as select
from dpmodels.reports import survey as survey
from dpmodels.reports import synth as synth
