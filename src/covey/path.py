"""Path: coefficients along a one-parameter family of models; the result of all paths and of the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.groups import Groups
from covey.layout import offsets
from covey.validation import Array, FloatArray, as_numeric_matrix, check_sparse, is_sparse, on_host

if TYPE_CHECKING:
    from covey.search.paths import Knots
    from covey.search.problem import Posed

__all__ = ["Path", "path_of"]


MESSAGES = {
    "completed": "The path has the requested number of groups.",
    "exhausted": "Nothing is left to explain at time {time:g}.",
}
SEPARATED = (
    "From time {time:g} on, the awake groups separate the responses perfectly, so the best coefficients are infinite; "
    "models from there on have a ridge of {ridge:g}."
)


@dataclass(frozen=True, repr=False)
class Path:
    """A sequence of models on the user's scale, in the order in which the path reached them.

    Attributes
    ----------
    times : ndarray, shape (n_times,)
        Times in order: event times on a limit path (equal if groups wake up together), iterations for gradient descent
        and for primal-dual, positions in the list of penalties for the group lasso.
    coefs : scipy.sparse.csr_array, shape (n_times, n_columns), or (n_times, n_outputs * n_columns)
        Coefficients in the user's columns and units, output by output. The coefficients of sleeping groups are exactly
        zero.
    intercepts : ndarray, shape (n_times,), or (n_times, n_outputs) with several outputs
    groups : Groups
    entered : list of (group position, time)
        The groups in the order in which they woke up, each with its time.
    status : str
        ``"completed"``, ``"stopped"`` by the caller, ``"exhausted"`` if nothing is left to explain, ``"separated"`` if
        the best coefficients of some model on the path are infinite, or ``"diverged"``; `message` gives details.
    penalties : ndarray, shape (n_times,) or None
        The penalty at each position, for a path over penalties.
    strengths : scipy.sparse.csr_array, shape (n_times, n_groups), or None
        The strength of each group, in units of the response: its norm in working coordinates. With
        ``standardize="group"`` this is the standard deviation of its contribution to the prediction, which can be
        compared between groups whatever the scales and correlations of their columns.
    parts : scipy.sparse.csr_array, shape (n_times, sum of the groups' sizes), or None
        With overlapping groups: the coefficients of every group, group by group; `coefs` holds their sums.
    ends_apart : bool
        Whether the last model was chosen among candidates and is not a point of the path itself.
    stepwise : bool
        Whether models are constant between times, as on a limit path.
    n_outputs : int
        The number of linear predictors of a model: one, one per response, or one per class.
    """

    times: Array
    coefs: sp.csr_array
    intercepts: FloatArray
    groups: Groups
    entered: list[tuple[int, float]] = field(default_factory=list)
    status: str = "completed"
    message: str = ""
    penalties: FloatArray | None = None
    strengths: sp.csr_array | None = None
    parts: sp.csr_array | None = None
    ends_apart: bool = False
    stepwise: bool = False
    n_outputs: int = 1

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        models = "1 model" if len(self) == 1 else f"{len(self)} models"
        outputs = f", {self.n_outputs} outputs" if self.n_outputs > 1 else ""
        woke = len({l for l, _ in self.entered})
        return f"Path({models}, {woke} of {self.groups.n_groups} groups woke up{outputs}, {self.status})"

    @property
    def group_norms(self) -> FloatArray:
        """Euclidean norm of each group's coefficients, over all outputs, at each time; shape (n_times, n_groups)."""
        groups = self.groups
        members = _per_output(groups.members, groups.n_columns, self.n_outputs)
        by_group = (self.coefs[:, members] if self.parts is None else self.parts).copy()
        label = np.tile(np.repeat(np.arange(groups.n_groups), groups.sizes), self.n_outputs)
        # in units of each group's largest coefficient, so that squares neither underflow nor overflow
        unit = np.zeros(groups.n_groups)
        np.maximum.at(unit, label[by_group.indices], np.abs(by_group.data))
        unit[unit == 0] = 1.0
        by_group.data = (by_group.data / unit[label[by_group.indices]]) ** 2
        membership = sp.csr_array((np.ones(label.size), (np.arange(label.size), label)))
        return np.sqrt((by_group @ membership).toarray()) * unit

    def added_up(self, groups: Groups) -> Path:
        """Convert a path of `groups.apart()`, on copies of shared columns, to the overlapping groups."""
        members = _per_output(groups.members, groups.n_columns, self.n_outputs)
        copies = np.arange(members.size)
        shape = (copies.size, self.n_outputs * groups.n_columns)
        total = sp.csr_array((np.ones(copies.size), (copies, members)), shape=shape)
        coefs = sp.csr_array(self.coefs @ total)
        coefs.sort_indices()
        return replace(self, coefs=coefs, parts=self.coefs, groups=groups)

    def ending_in(
        self, coef: FloatArray, intercept: FloatArray | float, strengths: FloatArray, parts: FloatArray | None
    ) -> Path:
        """The path with the chosen model appended, to which coefficients jump."""
        last = float(self.times[-1])
        time = 1.05 * last if last > 0 else 1.0

        def below(table: sp.csr_array, row: FloatArray) -> sp.csr_array:
            row = row.ravel()
            nonzero = np.flatnonzero(row)
            data, indices = np.append(table.data, row[nonzero]), np.append(table.indices, nonzero)
            ends = np.append(table.indptr, table.indptr[-1] + nonzero.size)
            return sp.csr_array((data, indices, ends), shape=(table.shape[0] + 1, table.shape[1]))

        assert self.strengths is not None
        return replace(
            self,
            times=np.append(self.times, time),
            coefs=below(self.coefs, coef),
            intercepts=np.concatenate([self.intercepts, np.reshape(intercept, (1, *self.intercepts.shape[1:]))]),
            strengths=below(self.strengths, strengths),
            parts=None if self.parts is None or parts is None else below(self.parts, parts),
            ends_apart=True,
        )

    def index(self, t: float) -> int:
        """The position of the last recorded time not after ``t``."""
        if t < self.times[0]:
            raise ValueError(f"The path starts at time {self.times[0]:g}; time {t:g} lies before it.")
        return int(np.searchsorted(self.times, t, side="right") - 1)

    def model(self, position: int) -> tuple[FloatArray, float | FloatArray]:
        """The coefficients of the columns of X and the intercept, at a position of the path.

        Coefficients have shape (n_columns,), or (n_outputs, n_columns) with several outputs.
        """
        coef = self.coefs[[position]].toarray()[0]
        if self.n_outputs > 1:
            return coef.reshape(self.n_outputs, -1), self.intercepts[position]
        return coef, float(self.intercepts[position])

    def at(self, t: float) -> FloatArray:
        """The coefficients at the last recorded time not after ``t``, in the shape of `model`."""
        return self.model(self.index(t))[0]

    def predict(self, X: object) -> FloatArray:
        """Linear predictors of every model on the path; shape (n_rows, n_times), or (n_rows, n_times, n_outputs).

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or tensor, shape (n_rows, n_columns)
            The same columns in the same order as in the data of the path.
        """
        if is_sparse(X):
            check_sparse(X, "X")
        rows = sp.csr_array(X) if is_sparse(X) else as_numeric_matrix(on_host(X))
        expected = self.coefs.shape[1] // self.n_outputs
        if rows.shape[1] != expected:
            raise ValueError(
                f"X has {rows.shape[1]} columns, but the path was run on {expected}; give the same columns in the same "
                "order."
            )
        tables = [self.coefs[:, j * expected : (j + 1) * expected] for j in range(self.n_outputs)]
        products = [rows @ table.T for table in tables]
        fitted = np.stack([np.asarray(one.toarray() if is_sparse(one) else one) for one in products], axis=-1)
        return (fitted[..., 0] if self.n_outputs == 1 else fitted) + self.intercepts


def path_of(posed: Posed, knots: Knots, groups: Groups) -> Path:
    """A path in the user's columns and units: the minimiser on the groups awake after each event."""
    awake, ranks, times = knots.groups, posed.ranks, np.array(knots.times)
    columns, coefs, intercepts = posed.to_user(awake, knots.W, knots.levels)
    n, m, _ = coefs.shape
    starts = offsets(ranks[awake])
    W = posed.outputs(knots.W) / posed.strength_units[:, None]
    # in units of each group's largest coefficient, so that squares neither overflow nor underflow
    largest = np.append(np.abs(W).max(axis=(0, 1), initial=0.0), 0.0)
    unit = np.maximum.reduceat(largest, starts[:-1]) if awake else np.empty(0)
    unit[unit == 0] = 1.0
    squares = ((W / np.repeat(unit, ranks[awake])) ** 2).sum(axis=1)
    if awake:
        squares = np.add.reduceat(np.hstack([squares, np.zeros((n, 1))]), starts[:-1], axis=1)
    status = "exhausted" if knots.exhausted else "completed"
    message = MESSAGES[status].format(time=float(times[-1]))
    separated = np.flatnonzero(knots.separated)
    if separated.size:
        status = "separated"
        ridge = posed.settings.separated_ridge
        message += " " + SEPARATED.format(time=float(times[separated[0]]), ridge=ridge)
    n_columns = posed.working.mean.size
    wide = np.concatenate([columns + output * n_columns for output in range(m)])
    begun = len(awake) + 1 - len(times)
    path = Path(
        times=times,
        coefs=_sparse(wide, coefs.reshape(n, -1), m * n_columns),
        intercepts=intercepts if m > 1 else intercepts[:, 0],
        groups=groups.apart() if groups.overlapping else groups,
        entered=list(zip(awake, [0.0] * begun + times[1:].tolist(), strict=True)),
        status=status,
        message=message,
        stepwise=True,
        strengths=_sparse(np.array(awake, dtype=np.intp), np.sqrt(squares) * unit * (ranks[awake] > 0), ranks.size),
        n_outputs=m,
    )
    return path.added_up(groups) if groups.overlapping else path


def _per_output(members: NDArray[np.intp], n_columns: int, n_outputs: int) -> NDArray[np.intp]:
    """Columns repeated for every output, with offsets."""
    return (members + n_columns * np.arange(n_outputs)[:, None]).ravel()


def _sparse(columns: NDArray[np.intp], values: FloatArray, n_columns: int) -> sp.csr_array:
    """A sparse matrix with these values in the given columns; zeros are not stored."""
    order = np.argsort(columns)
    values = values[:, order]
    filled = values != 0
    indices = np.broadcast_to(np.asarray(columns)[order], values.shape)[filled]
    return sp.csr_array((values[filled], indices, offsets(filled.sum(axis=1))), shape=(len(values), n_columns))
