from .call import MomentsCall as MomentsCall
from .cca import CCAResult as CCAResult
from .cov import CovResult as CovResult
from .moments import MomentsResult as MomentsResult
from .pca import PCAResult as PCAResult
from .pca import SubspaceResult as SubspaceResult
from .store import open_saved as open_saved
