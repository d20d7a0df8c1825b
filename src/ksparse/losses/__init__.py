"""The losses φ."""

from ksparse.losses.autodiff import autodiff
from ksparse.losses.base import Loss
from ksparse.losses.checks import GradientCheck, check_gradient
from ksparse.losses.cox import Cox
from ksparse.losses.custom import Custom
from ksparse.losses.data_fit import DataFit, LeastSquares
from ksparse.losses.huber import Huber
from ksparse.losses.log_link import Gamma, NegativeBinomial, Poisson, Tweedie
from ksparse.losses.logistic import Logistic
from ksparse.losses.multi_response import MultiResponse
from ksparse.losses.multinomial import Multinomial
from ksparse.losses.quadratic import MeanVariance, PrincipalComponent, Quadratic, QuadraticForm
from ksparse.losses.quantile import Quantile

__all__ = ["Cox", "Custom", "DataFit", "Gamma", "GradientCheck", "Huber", "LeastSquares", "Logistic", "Loss",
           "MeanVariance", "MultiResponse", "Multinomial", "NegativeBinomial", "Poisson", "PrincipalComponent",
           "Quadratic", "QuadraticForm", "Quantile", "Tweedie", "autodiff", "check_gradient"]  # fmt: skip
