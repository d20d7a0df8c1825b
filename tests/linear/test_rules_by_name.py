"""Rules about supports in the estimators: by names or indices, without the intercept."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

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
    assert chosen(ks.SparseRegressor(4, loss=loss, groups=groups).fit(table, y)) == "abcdefab"


def test_limits_hold_for_every_target_and_class(table, y):
    limits = {"kind": (0, 1)}, {"c": "kind", "d": "kind"}
    model = ks.SparseRegressor(3, group_limits=(limits[1], limits[0])).fit(table, np.column_stack([y, -y]))
    assert (np.count_nonzero(model.coef_[:, 2:4], axis=1) == 1).all()
    classes = ks.SparseClassifier(3, alpha=0.01, group_limits=(limits[1], limits[0])).fit(
        table, np.digitize(y, [4.0, 6.0])
    )
    assert (np.count_nonzero(classes.coef_[:, 2:4], axis=1) <= 1).all()


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"groups": ["a"]}, ValueError, "groups must have one label per feature, 7"),
        ({"groups": {"z": 1}}, ValueError, "groups holds 'z', which is not a feature"),
        ({"requires": {"ab": ["z"]}}, ValueError, "requires holds 'z'"),
        ({"requires": ["ab"]}, TypeError, "requires must be"),
        ({"group_limits": {"a": (0, 1)}}, TypeError, "group_limits must be"),
        ({"requires": {"ab": "a"}, "method": "apdca"}, ValueError, "requires is only supported with method='auto'"),
    ],
)
def test_errors_name_the_parameter(table, y, rules, error, message):
    with pytest.raises(error, match=message):
        ks.SparseRegressor(2, **rules).fit(table, y)


@pytest.mark.parametrize("kind", [ks.SparseRegressorCV, ks.SparseClassifierCV])
@pytest.mark.parametrize("criterion", ["cv", "bic"])
def test_rules_hold_for_every_k_that_is_tried(table, y, kind, criterion):
    target = y if kind is ks.SparseRegressorCV else (y > 5).astype(int)
    model = kind(range(1, 7), criterion=criterion, cv=3, requires={"ab": ["a", "b"]}).fit(table, target)
    for k, coef in zip(np.tile(model.ks_, model.coef_path_.size // 42), model.coef_path_.reshape(-1, 7), strict=True):
        inside = set(np.flatnonzero(coef)) | ({0, 1} if coef[6] else set())
        assert len(inside) <= k
    groups = {"a": "product", "b": "product", "ab": "product", "e": "others", "f": "others"}
    whole = kind(criterion=criterion, cv=3, groups=groups).fit(table, target)
    assert whole.ks_.tolist() == [1, 2, 3, 4]  # product, c, d, others
    for k, coef in zip(np.tile(whole.ks_, whole.coef_path_.size // 28), whole.coef_path_.reshape(-1, 7), strict=True):
        blocks = [coef[[0, 1, 6]].any(), coef[2] != 0, coef[3] != 0, coef[4:6].any()]
        assert sum(blocks) <= k


def test_the_chosen_model_is_that_of_its_k_alone(table, y):
    rules = {"requires": {"ab": ["a", "b"]}, "group_limits": ({"c": "kind", "d": "kind"}, {"kind": (0, 1)})}
    chooses = ks.SparseRegressorCV([3, 4], cv=3, **rules).fit(table, y)
    np.testing.assert_allclose(chooses.coef_, ks.SparseRegressor(chooses.k_, **rules).fit(table, y).coef_, atol=1e-8)
    assert (
        ks.SparseRegressorCV(group_limits=({"c": "kind", "d": "kind"}, {"kind": (2, 2)}), cv=3).fit(table, y).ks_[0]
        == 2
    )


def cities(rng, rows=120):
    town = rng.choice(["Paris", "New York", "Rome", "Oslo"], rows)
    table = pd.DataFrame(
        {
            "city": town,
            "city_size": rng.standard_normal(rows),
            "age": rng.standard_normal(rows),
            "noise": rng.standard_normal(rows),
        }
    )
    y = (
        pd.Series(town).map({"Paris": 0.0, "New York": 1.0, "Rome": -1.0, "Oslo": 2.0}).to_numpy()
        + table["age"]
        + 0.1 * rng.standard_normal(rows)
    )
    return table, y


@pytest.mark.parametrize("prefix", [True, False])
def test_dummies_of_a_factor_enter_together_at_the_end_of_a_pipeline(rng, prefix):
    table, y = cities(rng)
    table = table if prefix else table.drop(columns="city_size")
    encode = ColumnTransformer(
        [("cat", OneHotEncoder(drop="first", sparse_output=False), ["city"])],
        remainder="passthrough",
        verbose_feature_names_out=prefix,
    )
    factor = "cat__city" if prefix else "city"
    model = make_pipeline(encode, ks.SparseRegressor(2, groups=ks.factors(factor))).set_output(transform="pandas")
    fitted = clone(model).fit(table, y)
    assert [name.rpartition("__")[2] for name in fitted[-1].get_feature_names_out()] == [
        "city_Oslo",
        "city_Paris",
        "city_Rome",
        "age",
    ]
    with pytest.raises(ValueError, match="X has none: in a pipeline, call set_output"):
        make_pipeline(encode.set_output(transform="default"), ks.SparseRegressor(2, groups=ks.factors(factor))).fit(
            table, y
        )
    if prefix:
        with pytest.raises(
            ValueError, match="columns of several steps, cat and remainder: choose one, for example 'cat__city'"
        ):
            make_pipeline(encode, ks.SparseRegressor(2, groups=ks.factors("city"))).set_output(transform="pandas").fit(
                table, y
            )


def test_names_of_factors():
    assert ks.factors("a", "a_b")(["a_1", "a_b_1", "x__a_b_2", "a=3", "b", "a[T.4]"]) == [
        "a",
        "a_b",
        "a_b",
        "a",
        "b",
        "a",
    ]
    assert ks.factors("a") == clone(ks.factors("a"), safe=False)
    for names, error in ((("z",), ValueError), ((), ValueError), ((1,), TypeError)):
        with pytest.raises(error, match="factors"):
            ks.factors(*names)(["a_1"])


def test_parents_may_be_groups(table, y):
    groups, rules = {"a": "factors", "b": "factors"}, {"ab": "factors"}
    assert chosen(ks.SparseRegressor(2, groups=groups, requires=rules).fit(table, y)) == "abab"
    assert chosen(ks.SparseRegressor(3, groups=groups, requires=rules).fit(table, y)) == "abcab"
