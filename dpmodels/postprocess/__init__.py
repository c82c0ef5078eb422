"""Post-processing of released arrays, at no privacy cost."""

from dpmodels.postprocess.covariance import Covariance as Covariance
from dpmodels.postprocess.covariance import Eigen as Eigen
from dpmodels.postprocess.covariance import correlation as correlation
from dpmodels.postprocess.covariance import covariance as covariance
from dpmodels.postprocess.covariance import eigen as eigen
from dpmodels.postprocess.covariance import in_units as in_units
from dpmodels.postprocess.covariance import second_moment_about as second_moment_about
from dpmodels.postprocess.denoise import denoise as denoise
from dpmodels.postprocess.denoise import denoise_values as denoise_values
from dpmodels.postprocess.denoise import nearest_psd as nearest_psd
from dpmodels.postprocess.denoise import psd_values as psd_values
