"""The losses φ, one file each."""

from ksparse.losses.autodiff import autodiff
from ksparse.losses.base import Loss
from ksparse.losses.check import GradientCheck, check_gradient
from ksparse.losses.custom import Custom
from ksparse.losses.data_fit import DataFit, LeastSquares
from ksparse.losses.huber import Huber
from ksparse.losses.logistic import Logistic
from ksparse.losses.poisson import Poisson
from ksparse.losses.quadratic import MeanVariance, PrincipalComponent, Quadratic, QuadraticForm

__all__ = [
    "Custom",
    "DataFit",
    "GradientCheck",
    "Huber",
    "LeastSquares",
    "Logistic",
    "Loss",
    "MeanVariance",
    "Poisson",
    "PrincipalComponent",
    "Quadratic",
    "QuadraticForm",
    "autodiff",
    "check_gradient",
]
