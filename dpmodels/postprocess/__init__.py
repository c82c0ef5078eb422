"""Post-processing: free of charge, arrays in and out."""

from dpmodels.postprocess.covariance import Covariance as Covariance
from dpmodels.postprocess.covariance import correlation as correlation
from dpmodels.postprocess.covariance import covariance as covariance
from dpmodels.postprocess.eigen import Eigen as Eigen
from dpmodels.postprocess.eigen import eigen as eigen
