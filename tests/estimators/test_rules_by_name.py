"""Rules about supports in the estimators: by names or indices, the intercept under none."""

import numpy as np
import pytest

import ksparse as ks

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def table(rng):
    X = pd.DataFrame(rng.standard_normal((80, 6)), columns=list("abcdef"))
    return X.assign(ab=X["a"] * X["b"])


@pytest.fixture
def y(table, rng):
    return 2 * table["ab"] + table["c"] - 0.5 * table["d"] + 5.0 + 0.1 * rng.standard_normal(80)


def chosen(model):
    return "".join(model.get_feature_names_out())


@pytest.mark.parametrize("loss", ["squared", "huber"])  # with huber the intercept is a variable
def test_a_product_comes_with_its_factors(table, y, loss):
    assert chosen(ks.SparseRegressor(3, loss=loss).fit(table, y)) == "cdab"
    by_name = ks.SparseRegressor(4, loss=loss, requires={"ab": ["a", "b"]}).fit(table, y)
    by_index = ks.SparseRegressor(4, loss=loss, requires={6: [0, 1]}).fit(table.to_numpy(), y)
    assert chosen(by_name) == "abcab"
    assert np.array_equal(by_name.coef_, by_index.coef_)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_groups_enter_whole_and_are_counted(table, y, loss):
    groups = {"a": "product", "b": "product", "ab": "product", "e": "others", "f": "others"}
    assert chosen(ks.SparseRegressor(2, loss=loss, groups=groups).fit(table, y)) == "abcab"
    assert chosen(ks.SparseRegressor(99, loss=loss, groups=groups).fit(table, y)) == "abcdefab"


def test_limits_hold_for_every_target_and_class(table, y):
    limits = {"kind": (0, 1)}, {"c": "kind", "d": "kind"}
    model = ks.SparseRegressor(3, group_limits=(limits[1], limits[0])).fit(table, np.column_stack([y, -y]))
    assert (np.count_nonzero(model.coef_[:, 2:4], axis=1) == 1).all()
    classes = ks.SparseClassifier(3, alpha=0.01, group_limits=(limits[1], limits[0])).fit(table, np.digitize(y, [4.0, 6.0]))
    assert (np.count_nonzero(classes.coef_[:, 2:4], axis=1) <= 1).all()


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"groups": ["a"]}, ValueError, "groups must have one label per feature, 7"),
        ({"groups": {"z": 1}}, ValueError, "groups holds 'z', which is not a feature"),
        ({"requires": {"ab": ["z"]}}, ValueError, "requires holds 'z'"),
        ({"requires": ["ab"]}, TypeError, "requires must be"),
        ({"group_limits": {"a": (0, 1)}}, TypeError, "group_limits must be"),
        ({"requires": {"ab": "a"}, "method": "apdca"}, ValueError, "requires needs method='auto'"),
    ],
)
def test_errors_name_the_parameter(table, y, rules, error, message):
    with pytest.raises(error, match=message):
        ks.SparseRegressor(2, **rules).fit(table, y)
