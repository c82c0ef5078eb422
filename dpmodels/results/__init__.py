"""What the user holds: released values and public facts, never rows."""

from dpmodels.results.call import PCACall as PCACall
from dpmodels.results.pca import PCAResult as PCAResult
from dpmodels.results.store import read_pca as read_pca
from dpmodels.results.summary import Summary as Summary
