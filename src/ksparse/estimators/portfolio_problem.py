"""What the parameters of a `SparsePortfolio` ask for, as a portfolio problem, and its solution."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from ksparse.datasets import Assets
from ksparse.estimator_base import SparseEstimator, check_numeric, clip_k, validate_X, warn
from ksparse.losses import LeastSquares
from ksparse.models.index import Index
from ksparse.models.mandate import mandate
from ksparse.models.portfolio import Portfolio, portfolio, tracking
from ksparse.models.prices import looks_like_prices
from ksparse.models.rules import Universe
from ksparse.models.solve_portfolio import require_counts, solve_portfolio
from ksparse.result import Result
from ksparse.solve.judge import moved
from ksparse.solve.minimize import minimize
from ksparse.util.arrays import Vector
from ksparse.util.checks import SMALLEST, check_integer, check_n_jobs, check_number, check_size

MANDATE = (
    "min_weights", "max_weights", "groups", "group_caps", "group_floors", "group_cardinalities", "linear_constraints", "forced_in",
    "forced_out", "previous_weights", "turnover_cost", "max_turnover",
)  # fmt: skip
BESIDE_SET: dict[str, Any] = {  # what a set of one's own has to say itself
    "max_weight": None, "min_weights": None, "max_weights": None, "budget": 1.0, "max_short": None, "group_caps": None,
    "group_floors": None, "linear_constraints": None, "target_return": None, "previous_weights": None, "max_tracking_error": None,
}  # fmt: skip
NO_RISK = "some portfolio has no risk and as much return as one likes: use long_only, or max_weight"


class PortfolioProblem(SparseEstimator):
    """The reading of the parameters."""

    def _assets(self, X: Any) -> tuple[Assets, int]:
        """The returns as numbers, looked at, and k."""
        X = validate_X(self, X, ensure_min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        check_size(X, "X", names, least=SMALLEST)
        check_n_jobs(self.n_jobs)
        if looks_like_prices(X):
            warn(
                "SparsePortfolio: X looks like prices, all positive and steady; it must hold returns, prices[1:] / prices[:-1] - 1"
            )
        return Assets.from_returns(X, [] if names is None else list(names)), clip_k(
            check_integer(self.k, "k", 1), X.shape[1], "assets", self
        )

    def _options(self) -> dict[str, Any]:
        """How the search is run."""
        return {name: getattr(self, name) for name in ("effort", "n_jobs", "random_state", "gap", "max_time")}

    def _rules(self, n: int) -> dict[str, Any]:
        """Every rule but the objective's, for `portfolio`."""
        names = getattr(self, "feature_names_in_", None)
        read = mandate(Universe(n, names), **{name: getattr(self, name) for name in MANDATE})
        if self.C is not None:
            for option, default in BESIDE_SET.items():
                given = getattr(self, option)
                if given is not default and not (np.ndim(given) == 0 and given == default):
                    raise ValueError(f"{option} cannot be combined with C: put it into the set")
        return read | {
            "long_only": self.long_only, "max_weight": self.max_weight, "budget": self.budget, "max_short": self.max_short
        }  # fmt: skip

    def _wanted(self, assets: Assets, y: Any) -> Portfolio:
        """Risk against return, under the rules and near to an index where one is given."""
        return portfolio(
            assets.V, assets.r, objective=self.objective, risk_aversion=self.risk_aversion, target_return=self.target_return,
            index=self._near(assets, y), **self._rules(len(assets.r)),
        )  # fmt: skip

    def _near(self, assets: Assets, y: Any) -> Index | None:
        """The index that the returns must stay near to."""
        if self.max_tracking_error is None:
            return None
        limit = check_number(self.max_tracking_error, "max_tracking_error", above=0)
        if y is None:
            raise ValueError("max_tracking_error needs y, the returns of the index")
        assert assets.returns is not None
        return Index(assets.returns, y, limit)

    def _solved(self, wanted: Portfolio, k: int, options: dict[str, Any], **more: Any) -> Result:
        return solve_portfolio(wanted, k, min_weight=self.min_weight, C=self.C, **options, **more)

    def _tracking(self, assets: Assets, y: Any) -> Portfolio:
        """The mean squared distance to an index, but for a constant, under the rules."""
        X = assets.returns
        assert X is not None
        check_size(y, "y")
        for option in ("objective", "risk_aversion", "target_return"):
            if getattr(self, option) is not None:
                raise ValueError(f"{option} has no meaning when an index is tracked: fit without y, or leave it out")
        return tracking(X, y, **self._rules(X.shape[1]))

    def _tracked(self, wanted: Portfolio, X: Any, y: Any, k: int, options: dict[str, Any]) -> Result:
        """The portfolio whose returns are closest to those of an index: least squares, unless trades count too."""
        if wanted.trades or wanted.max_short is not None:
            return moved(self._solved(wanted, k, options), float(np.mean(np.square(y))))
        size = float(np.sqrt(np.mean(np.square(X)))) or 1.0  # returns are small numbers
        C = wanted.C if self.C is None else self.C
        names: dict[str, Any] = {
            "forced_in": wanted.forced_in,
            "forced_out": wanted.forced_out,
            "group_limits": wanted.group_limits,
        }
        require_counts(wanted, k, self.min_weight)
        return minimize(LeastSquares(X / size, y / size), k, C, min_nonzero=self.min_weight, **names, **options)


def check_vector_of(y: Any, rows: int) -> Vector:
    """y as a finite vector with one entry per row."""
    y = np.array(column_or_1d(check_numeric(y, "y"), warn=True), dtype=float)
    if len(y) != rows:
        raise ValueError(f"y must hold one return per row of X, {rows}, got {len(y)}")
    if not np.isfinite(y).all():
        raise ValueError("y must be finite, but contains NaN or inf")
    return np.asarray(y)
