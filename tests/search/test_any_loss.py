"""The search asks no loss for its name: a loss that a user wrote gives what the same loss of covey gives."""

import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import covey.search
from covey import GroupSparseRegressor, limit_path, losses
from covey.losses import MultiSquared, Squared
from covey.losses.base import LossOnRows
from covey.search.select import read_selection, select
from covey.search.settings import Settings
from covey.selection import HoldOut, Size
from estimator_problems import noisy_problem
from loss_problems import Quadratic
from search.posing import few_near, problem_with

FOLDER = Path(covey.search.__file__).parent
SOURCES = {str(path.relative_to(FOLDER)): ast.parse(path.read_text()) for path in sorted(FOLDER.rglob("*.py"))}
CLASSES = {name for name in losses.__all__ if isinstance(getattr(losses, name), type)}


def names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


@pytest.mark.parametrize("source", SOURCES)
def test_no_module_asks_which_loss_it_has(source):
    """Squared loss stands in ``default_factory=Squared`` and ``SQUARED = Squared()`` alone; names are not compared."""
    assert {"Loss", "Squared", "Cox"} < CLASSES
    tree, uses, defaults = SOURCES[source], [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("covey.losses"):
            concrete = {alias.name for alias in node.names} & CLASSES - {"Loss"}
            assert concrete <= {"Squared"}, "Only the default loss may be imported."
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            assert not names_in(node.args[1]) & CLASSES
        if isinstance(node, ast.Compare):
            attributes = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
            assert "name" not in attributes, "A loss must not be compared by its name."
        if isinstance(node, ast.Name) and node.id == "Squared":
            uses.append(node)
        if isinstance(node, ast.keyword) and node.arg == "default_factory":
            defaults.append(node.value)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SQUARED":
            defaults.append(node.value.func)
    assert all(any(use is allowed for allowed in defaults) for use in uses)


# ------------------------------------------------------------------ reductions to squared loss


class Demeaned(LossOnRows):
    """Squared residuals from their mean."""

    def residual(self, eta):
        residual = (self.y if eta.ndim == 1 else self.y[:, None]) - eta
        return residual - self.weight @ residual / self.weight.sum()

    def total(self, eta):
        return self._sum(self.residual(eta) ** 2 / 2)

    def score(self, eta):
        return self._weighted(self.residual(eta))

    def gram(self, eta, A, bounding=False):
        return A.T @ (self.weight[:, None] * (A - self.weight @ A / self.weight.sum()))


@dataclass(frozen=True)
class NoConstant(losses.CoupledLoss):
    """The squared loss with the best constant of all rows."""

    name = "no constant"

    def on(self, y, weight):
        return Demeaned(self, y, weight)


def test_a_coupled_loss_written_by_a_user():
    X, y, groups = noisy_problem("weak")
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    found, expected = (
        limit_path(X, y, groups, sample_weight=weight, loss=loss, max_groups=6) for loss in (NoConstant(), "squared")
    )
    assert [group for group, _ in found.entered] == [group for group, _ in expected.entered]
    np.testing.assert_allclose(found.coefs.toarray(), expected.coefs.toarray(), atol=1e-8)


class Both(MultiSquared):
    """A loss that does not say that its outputs are apart."""

    name, quadratic, apart, read = "both", False, losses.Loss.apart, losses.Loss.read


def test_constraints_need_outputs_that_do_not_interact():
    X, y, groups = noisy_problem("weak")
    with pytest.raises(ValueError, match=r"apart\(\) of the both loss returns no losses"):
        GroupSparseRegressor(groups, loss=Both(), constraints={0: ">=0"}).fit(X, np.column_stack([y, -y]))


SELECTIONS = {
    "folds": lambda X, y: 5,
    "validation": lambda X, y: HoldOut(validation=(X[:30] + 0.1, y[:30] - 0.3)),
    "ebic": lambda X, y: "ebic",
    "size": lambda X, y: Size(3),
}
OPTIONS = {"always": {"always": [5, 9]}, "no intercept": {"fit_intercept": False}, "factors": {"factors": 1}}


@pytest.mark.parametrize("far", [False, True], ids=["all near", "most far"])
@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("case", [*SELECTIONS, *OPTIONS])
def test_squared_loss_written_by_a_user(case, noise, far, monkeypatch):
    """Newton's method on the rows of X, against one solve with second moments."""
    assert not Quadratic().quadratic
    if far:
        few_near(monkeypatch, 10, 3)
    X, y, groups = noisy_problem(noise)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    way, options = read_selection(SELECTIONS.get(case, SELECTIONS["folds"])(X, y)), OPTIONS.get(case, {})
    # ridges on all columns are slow for a loss that may not be quadratic, and not all would be scored
    settings = Settings(hopeless=np.inf)
    expected, found = (
        select(problem_with(X, y, groups, weight=weight, loss=loss, **options), way, settings=settings)
        for loss in (Squared(), Quadratic())
    )
    assert found.recipe == expected.recipe
    assert found.groups == expected.groups
    largest = np.abs(expected.coef).max(initial=0)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-6 * largest)
    np.testing.assert_allclose(found.intercept, expected.intercept, atol=1e-6)
    errors = next(name for name in ("mse", "rss") if name in expected.candidates)
    assert found.candidates["recipe"].tolist() == expected.candidates["recipe"].tolist()
    np.testing.assert_allclose(found.candidates["deviance"], expected.candidates[errors], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("noise", ["weak", "strong"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_several_responses_of_which_there_is_one(selection, noise):
    X, y, groups = noisy_problem(noise)
    way = SELECTIONS[selection](X, y)
    expected = GroupSparseRegressor(groups, selection=way, factors=0).fit(X, y)
    if selection == "validation":
        way = HoldOut(validation=(way.validation[0], way.validation[1][:, None]))
    found = select(problem_with(X, y[:, None], groups, loss=MultiSquared()), read_selection(way))
    assert found.recipe == expected.recipe_
    assert {groups.names[l] for l in found.groups} == set(expected.selected_groups_)
    np.testing.assert_allclose(found.coef[0], expected.coef_, atol=1e-6 * np.abs(expected.coef_).max())
    np.testing.assert_allclose(found.strengths, expected.group_strengths_, atol=1e-6)


def test_rows_of_weight_zero_do_not_matter_in_a_wide_problem(monkeypatch):
    few_near(monkeypatch, 30)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 120))
    y = X.sum(axis=1) / 5 + rng.standard_normal(60)
    weight = np.where(np.arange(60) % 4 == 1, 0.0, 1.0)
    for selection in (HoldOut(validation=(X + 0.1 * rng.standard_normal(X.shape), y)), 3):
        models = [
            GroupSparseRegressor(2, loss=Quadratic(), selection=selection).fit(
                X[rows], y[rows], sample_weight=weight[rows]
            )
            for rows in (np.arange(60), np.flatnonzero(weight))
        ]
        assert all(model.candidates_["recipe"].str.contains("all groups").any() for model in models)
        assert models[0].recipe_ == models[1].recipe_
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-7)
