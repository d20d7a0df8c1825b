"""Data sets: the generators of the paper, published tables, data of scikit-learn, and loaders of local files."""

from ksparse.datasets.bundled import breast_cancer, diabetes, digits, pit_props
from ksparse.datasets.files import (
    BuyIns,
    MissingDataError,
    buy_ins,
    colon,
    communities,
    leukemia,
    orlib_index,
    orlib_portfolio,
    riboflavin,
    sp500,
    tokyo,
    unmixing,
)
from ksparse.datasets.synthetic import Assets, SparseRegression, factor_model, table2, table5

__all__ = [
    "Assets", "BuyIns", "MissingDataError", "SparseRegression", "breast_cancer", "buy_ins", "colon", "communities",
    "diabetes", "digits", "factor_model", "leukemia", "orlib_index", "orlib_portfolio", "pit_props", "riboflavin",
    "sp500", "table2", "table5", "tokyo", "unmixing",
]  # fmt: skip
