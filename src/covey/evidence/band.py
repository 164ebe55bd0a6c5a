"""Bands of curves that hold after selection: the effects of all columns of a variable, given selected controls."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import BaseEstimator

from covey.designs.rows import Mask
from covey.evidence.double_selection import Effects, double_selection
from covey.evidence.effect import place_of, terms_without
from covey.evidence.reading import odds_in_words, problem_of
from covey.groups.checks import plural
from covey.progress import Progress, showing
from covey.terms import Terms, expand
from covey.terms.effects import Effect, FittedTerms, term_means
from covey.terms.parts import main_columns
from covey.terms.reading import as_frame
from covey.validation import FloatArray, MatrixLike, PerRow

# Draws of the largest deviation over a curve: the quantile has an error of about a hundredth.
DRAWS = 20_000

# The most deviations in memory at once.
MOST_NUMBERS = 4_000_000


def band(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    of: str,
    *,
    confidence: float = 0.9,
    simultaneous: bool = True,
    at: ArrayLike | None = None,
    n: int | None = None,
    clusters: PerRow = None,
    offset: PerRow = None,
    sample_weight: PerRow = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    verbose: int | None = None,
) -> Effect:
    r"""The effect of a variable as a curve, with a band that holds although terms were selected.

    The line and all columns of the variable's curve (or all levels of a category) are in the model, whether or not a
    fit selects them; the detail of the curve is not, because it would make every band much wider. The terms of the
    other variables are controls, selected twice as in `covey.evidence.effect`: for the response, and for each of the
    variable's columns. The curve and its covariance come from a refit without a penalty.
    The band is the curve plus or minus a multiple of its standard error: for a simultaneous band, which contains the
    whole true curve with probability `confidence`, the quantile of the largest deviation over all values; for a
    pointwise one that of Student's t.

    The curve is not the one of ``model.effect``, which may be straight, or zero, where the fit found nothing more: a
    band around a selected shape would not hold. If it may have more bends than its knots can follow, say so beforehand,
    with ``terms={"age": Curve(knots=20)}``.
    Pairs with the variable are left out, so where there are any, it is the curve at average values of the others.

    Parameters
    ----------
    model : GroupSparseRegressor, GroupSparseClassifier or GroupSparseCox
        With ``terms=`` and without ``constraints=``. It says what the terms and the loss are, does not have to be
        fitted, and is not changed.
    X : table of variables
    y : array-like of shape (n_rows,)
        For a classifier, two classes; for survival times, the curve is one of log hazards.
    of : str
        The name of the variable.
    confidence : float
    simultaneous : bool
        Whether the band is for the whole curve, or for each value alone.
    at : array-like, optional
        The values; by default a grid over the range, or all levels.
    n : int, optional
        The number of points of the grid, by default 200.
    clusters, offset, sample_weight, n_jobs, progress, verbose
        As in `covey.evidence.effect`.

    Returns
    -------
    Effect
        As ``model.effect`` returns it, with `effect`, `low` and `high`. Draw it with
        ``covey.plots.TermsDisplay([curve]).plot()``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from covey import GroupSparseRegressor
    >>> from covey.evidence import band
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.uniform(-2, 2, (300, 6)), columns=list("abcdef"))
    >>> y = np.sin(2 * table["a"]) + table["b"] + 0.5 * rng.standard_normal(300)
    >>> curve = band(GroupSparseRegressor(terms="auto"), table, y, of="a", at=[-0.8, 0.0, 0.8])
    >>> bool(np.all((curve.low < [-1.0, 0.0, 1.0]) & ([-1.0, 0.0, 1.0] < curve.high)))
    True
    """
    if getattr(model, "terms", None) is None:
        raise ValueError("band needs a model with terms=, such as GroupSparseRegressor(terms='auto').")
    if model.constraints:
        raise ValueError(
            "band estimates the curve without constraints, and their limits would make its errors wrong: leave them "
            "out, as in band(clone(model).set_params(constraints=None), X, y, ...). model.effect has the curve that "
            "keeps them."
        )
    frame = as_frame(X)
    names = list(frame.columns)
    if not isinstance(of, str | int | np.integer):
        raise ValueError(f"of must be the name of one variable, not {of!r}: call band for each.")
    of = names[place_of(of, X, names, len(names))]
    if len(names) == 1:
        raise ValueError("X has only one variable, and none is left as a control: use an ordinary regression.")
    own = Terms({of: Terms.coerce(model.terms).kinds(names)[of]}, pairs=None)
    expansion, design = expand(own, None, frame[[of]], sample_weight)
    encoding = expansion.encoding
    # of the levels of a category, the first is the base
    first = [term.columns.start for term in encoding.terms if term.kind == "levels"]
    detail = [j for term in encoding.terms if term.kind == "detail" for j in range(*term.columns.indices(2**62))]
    columns = np.setdiff1d(np.arange(design.shape[1]), first + detail)
    D = np.asarray(design.take(columns), dtype=float)
    others = type(model)(**{**model.get_params(deep=False), "terms": terms_without(model.terms, names, [of])})
    own_terms = {term.name for term in encoding.terms}
    always = [model.always] if isinstance(model.always, str) else model.always
    others.always = [name for name in always if name not in own_terms]
    problem = problem_of(others, frame.drop(columns=of), y, sample_weight, offset)
    column_names = [encoding.column_names[j] for j in columns]
    with showing("band", verbose):
        found = double_selection(problem, column_names, D, clusters, confidence, n_jobs=n_jobs, progress=progress)
    coef = np.zeros((1, design.shape[1]))
    coef[0, columns] = found.estimates
    share = problem.weight / problem.weight.sum()
    selected = tuple(l for l, term in enumerate(encoding.terms) if term.kind != "detail")
    means = term_means(expansion, design, problem.weight, coef, selected)
    curve = FittedTerms(expansion, coef, np.zeros(1), selected, means).effect(of, at=at, n=n)
    start, basis = main_columns(expansion, 0, curve.axes[0].raw)
    shown = np.arange(start, start + basis.shape[1])
    basis = (basis - share @ design.take(shown))[:, np.isin(shown, columns)]
    margin = _margin(found, basis, np.isin(columns, shown), simultaneous)
    kind = "simultaneous" if simultaneous else "pointwise"
    note = f"{kind} {confidence:.0%} band, given {plural(len(found.controls), 'control')}"
    remarks = *found.remarks, *odds_in_words(y, problem.loss)
    return Effect(
        curve.name, curve.terms, curve.axes, curve.effect, curve.effect - margin, curve.effect + margin, curve.missing,
        note=". ".join([note, *(one.rstrip(".") for one in remarks)]),
    )  # fmt: skip


def _margin(found: Effects, basis: FloatArray, own: Mask, simultaneous: bool) -> FloatArray:
    """Half the width of the band at each value; `own` are the coefficients that the basis belongs to."""
    values, vectors = np.linalg.eigh(found.covariance[np.ix_(own, own)])
    root = basis @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    error, df = np.linalg.norm(root, axis=1), _freedom(found, basis, own)
    if not simultaneous:
        return np.asarray(error * stats.t.ppf((1 + found.confidence) / 2, df))
    rng = np.random.default_rng(0)  # the same band every time
    unit = root / np.where(error > 0, error, 1.0)[:, None]
    draws = np.array_split(rng.standard_normal((DRAWS, root.shape[1])), DRAWS * len(unit) // MOST_NUMBERS + 1)
    largest = np.concatenate([np.abs(some @ unit.T).max(axis=1) for some in draws])
    least = float(df.min())
    largest /= np.sqrt(rng.chisquare(least, DRAWS) / least)
    return np.asarray(error * np.quantile(largest, found.confidence))


def _freedom(found: Effects, basis: FloatArray, own: Mask) -> FloatArray:
    """The degrees of freedom of the squared error at each value, by Satterthwaite's rule.

    A robust error rests on the few rows that move the curve there, not on all.
    """
    if found.n_clusters is not None or found.influence is None:
        return np.full(len(basis), float(found.df))
    squares = np.square(basis @ found.influence[own])
    total = np.square(squares.sum(axis=1))
    return np.divide(total, np.square(squares).sum(axis=1), out=np.full(len(basis), float(found.df)), where=total > 0)
