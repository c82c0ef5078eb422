"""What the user holds: released values and public facts, never rows."""

from dpmodels.results.call import MomentsCall as MomentsCall
from dpmodels.results.cca import CCAResult as CCAResult
from dpmodels.results.cov import CovResult as CovResult
from dpmodels.results.moments import MomentsResult as MomentsResult
from dpmodels.results.netcdf import open_saved as open_saved
from dpmodels.results.pca import PCAResult as PCAResult
from dpmodels.results.subspace import SubspaceResult as SubspaceResult
