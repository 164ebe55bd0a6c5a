"""Path: coefficients along a one-parameter family of models; the result of all paths and of the baselines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from covey.designs import as_design
from covey.groups import Groups
from covey.groups.checks import refuse_other_order
from covey.validation import Array, FloatArray

__all__ = ["Path"]


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
            return sp.csr_array(sp.vstack([table, sp.csr_array(row.reshape(1, -1))]))

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
        if not t >= self.times[0]:  # so that NaN is refused, too
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
        X : array, DataFrame, sparse matrix, tensor or other storage, shape (n_rows, n_columns)
            The same columns in the same order as in the data of the path.
        """
        design, expected = as_design(X), self.coefs.shape[1] // self.n_outputs
        if design.shape[1] != expected:
            raise ValueError(
                f"X has {design.shape[1]} columns, but the path was run on {expected}; give the same columns in the "
                "same order."
            )
        remedy = "give the columns in the order of the path"
        refuse_other_order(self.groups.columns, design.columns, of="the data of the path", remedy=remedy)
        used = np.unique(self.coefs.indices % expected).astype(np.intp)
        coefs = self.coefs[:, _per_output(used, expected, self.n_outputs)].toarray()
        coefs = coefs.reshape(self.intercepts.size, used.size)
        fitted = design.predict(used, coefs, np.ravel(self.intercepts))
        return np.asarray(fitted, dtype=float).reshape(-1, *self.intercepts.shape)


def _per_output(members: NDArray[np.intp], n_columns: int, n_outputs: int) -> NDArray[np.intp]:
    """Columns repeated for every output, with offsets."""
    return (members + n_columns * np.arange(n_outputs)[:, None]).ravel()
