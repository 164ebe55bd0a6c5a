"""Simulated data from group-sparse linear models."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covey.groups import Groups
from covey.summary import brief
from covey.validation import FloatArray, as_numbers, check_scale, one_of, positive, real, whole

Design = Literal["rademacher", "gaussian", "ar", "equicorrelated", "orthogonal"]
DESIGNS: tuple[str, ...] = get_args(Design)
Noise = Literal["gaussian", "rademacher", "uniform", "student"]
NOISES: tuple[Noise, ...] = get_args(Noise)


@dataclass(frozen=True, repr=False)
class GroupSparseData:
    """Data from ``y = X w_star + noise`` with ``w_star`` zero outside a few groups.

    Attributes
    ----------
    X, y : ndarray of shape (n, p) and (n,)
    w_star : ndarray of shape (p,)
    groups : Groups
    noise : ndarray of shape (n,)
        The noise that was added.
    sigma : float
        Its standard deviation.
    X_val, y_val : ndarray or None
        A validation set from the same model, if one was drawn.
    """

    X: FloatArray
    y: FloatArray
    w_star: FloatArray
    groups: Groups
    noise: FloatArray
    sigma: float
    X_val: FloatArray | None = None
    y_val: FloatArray | None = None

    __repr__ = brief

    @property
    def u_star(self) -> FloatArray:
        """The paper's true magnitudes, ``sqrt(norm(w_star_l))``; shape (L,)."""
        return np.sqrt(self.groups.norms(self.w_star))

    @property
    def v_star(self) -> FloatArray:
        """The paper's true directions, of unit norm in each group of the support, zero elsewhere; shape (p,)."""
        norms = self.groups.norms(self.w_star)[self.groups.labels]
        return np.divide(self.w_star, norms, out=np.zeros_like(self.w_star), where=norms > 0)

    @property
    def S(self) -> NDArray[np.intp]:
        """The indices of the groups in the support."""
        return np.flatnonzero(self.u_star > 0)

    @property
    def snr(self) -> float:
        """Signal-to-noise ratio of this sample, ``norm(X w_star)^2 / (n sigma^2)``."""
        signal = float(np.sum((self.X @ self.w_star) ** 2))
        return signal / (len(self.y) * self.sigma**2) if self.sigma > 0 else np.inf

    def oracle(self) -> FloatArray:
        """Least squares on the true groups, as if the support were known."""
        columns = np.flatnonzero(np.isin(self.groups.labels, self.S))
        w = np.zeros_like(self.w_star)
        w[columns] = np.linalg.lstsq(self.X[:, columns], self.y, rcond=None)[0]
        return w


def make_group_sparse(
    n_rows: int = 150,
    n_columns: int = 300,
    groups: object = 3,
    *,
    design: Design = "rademacher",
    rho: float = 0.5,
    active: int | Iterable[Hashable] = 3,
    values: float | ArrayLike | Literal["normal"] = 10.0,
    sigma: float | None = None,
    snr: float | None = None,
    noise: Noise = "gaussian",
    noise_df: float = 3.0,
    random_state: int | np.random.Generator | None = None,
) -> GroupSparseData:
    """Simulate ``y = X w_star + noise`` with ``w_star`` zero outside a few groups.

    The defaults are those of the paper's first experiment: a 150 x 300 Rademacher design, groups of 3, three of them
    with all entries 10, and noise with standard deviation 0.5.

    Parameters
    ----------
    n_rows, n_columns : int
    groups : int, labels, lists or Groups
        Anything that ``Groups.coerce`` reads.
    design : {"rademacher", "gaussian", "ar", "equicorrelated", "orthogonal"}
        Rows are independent, columns have variance one. ``"ar"`` has correlation ``rho**|i - j|``,
        ``"equicorrelated"`` has ``rho`` between any two columns, ``"orthogonal"`` has ``X'X/n`` exactly the identity
        (it needs ``n_rows >= n_columns``).
    rho : float
        For the correlated designs, in [0, 1) (``"ar"``: in (-1, 1)).
    active : int or iterable of group names
        The number of groups with signal (the first ones), or their names. Ignored if `values` has one entry per
        column.
    values : float, array or "normal"
        The entries on the support: one value for all, one per entry, or standard normal draws. An array with one
        entry per column is ``w_star`` itself.
    sigma, snr : float
        The noise, by its standard deviation (0.5 when neither is given), or by the ratio
        ``norm(X w_star)^2 / (n sigma^2)``.
    noise : {"gaussian", "rademacher", "uniform", "student"}
        Its distribution, always with standard deviation sigma. The first three are sub-Gaussian with parameter sigma,
        as the paper's corollary requires; Student's t is not, whatever its degrees of freedom.
    noise_df : float
        Degrees of freedom of Student's t; above 2, so that the variance exists.
    random_state : int, Generator or None

    Returns
    -------
    GroupSparseData

    Examples
    --------
    >>> from covey.datasets import make_group_sparse
    >>> data = make_group_sparse(random_state=0)
    >>> data.X.shape, data.S.tolist(), data.u_star[:4].round(3).tolist()
    ((150, 300), [0, 1, 2], [4.162, 4.162, 4.162, 0.0])
    """
    n, p = whole(n_rows, "n_rows"), whole(n_columns, "n_columns")
    check_table_size(n, p)
    one_of(design, DESIGNS, "design")
    one_of(noise, NOISES, "noise")
    partition = Groups.coerce(groups, p)
    try:
        rng = np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a non-negative integer, a Generator or None, not a {type(random_state).__name__}."
        ) from None
    X = _draw_design(rng, n, p, design, rho)
    w_star = _draw_coefficients(rng, partition, active, values)
    if sigma is not None and snr is not None:
        raise ValueError("Give sigma or snr, not both.")
    if snr is None:
        sigma = positive(0.5 if sigma is None else sigma, "sigma", zero=True)
    else:
        signal = float(np.linalg.norm(X @ w_star))
        if signal == 0:
            raise ValueError("snr needs a signal, but w_star is zero: give sigma instead.")
        sigma = signal / np.sqrt(n * positive(snr, "snr"))
    xi = draw_noise(rng, n, sigma, noise, df=noise_df)
    return GroupSparseData(X, X @ w_star + xi, w_star, partition, xi, sigma)


# The most numbers in a simulated table: 32 GiB.
MOST_NUMBERS = 2**32


def check_table_size(n: int, p: int) -> None:
    """Refuse a table that is too large for memory."""
    if n * p > MOST_NUMBERS:
        raise ValueError(f"n_rows={n} and n_columns={p} make a table that is too large.")


def draw_noise(
    rng: np.random.Generator, size: int | tuple[int, ...], sigma: float, kind: str = "gaussian", *, df: float = 3.0
) -> FloatArray:
    """Independent noise with mean 0 and standard deviation sigma.

    >>> draw_noise(np.random.default_rng(0), 3, 2.0, "rademacher").tolist()
    [2.0, 2.0, 2.0]
    """
    if kind == "gaussian":
        return sigma * rng.standard_normal(size)
    if kind == "rademacher":
        return sigma * (2.0 * rng.integers(0, 2, size=size) - 1.0)
    if kind == "uniform":
        return sigma * np.sqrt(3) * rng.uniform(-1, 1, size=size)
    if kind == "student":
        if not positive(df, "noise_df") > 2:
            raise ValueError(f"noise_df must be above 2, not {df!r}: Student's t has no variance otherwise.")
        return sigma * np.sqrt((df - 2) / df) * rng.standard_t(df, size=size)
    raise ValueError(f"noise must be one of {', '.join(NOISES)}, not {kind!r}.")


def _draw_design(rng: np.random.Generator, n: int, p: int, design: str, rho: float) -> FloatArray:
    if design == "rademacher":
        return 2.0 * rng.integers(0, 2, size=(n, p)) - 1.0
    if design == "gaussian":
        return rng.standard_normal((n, p))
    if design == "ar":
        if not -1 < real(rho, "rho") < 1:
            raise ValueError(f"rho must lie in (-1, 1) for an autoregressive design, not {rho!r}.")
        X = rng.standard_normal((n, p))
        X[:, 1:] *= np.sqrt(1 - rho**2)
        for j in range(1, p):
            X[:, j] += rho * X[:, j - 1]
        return X
    if design == "equicorrelated":
        if not 0 <= real(rho, "rho") < 1:
            raise ValueError(f"rho must lie in [0, 1) for an equicorrelated design, not {rho!r}.")
        common = rng.standard_normal((n, 1))
        return np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.standard_normal((n, p))
    if n < p:
        raise ValueError(f"An orthogonal design needs at least as many rows as columns, not {n} x {p}.")
    return np.sqrt(n) * np.linalg.qr(rng.standard_normal((n, p)))[0]


def _draw_coefficients(
    rng: np.random.Generator, groups: Groups, active: int | Iterable[Hashable], values: float | ArrayLike | str
) -> FloatArray:
    given = None if isinstance(values, str) else as_numbers(values, "values")
    if given is not None:
        check_scale(given, "values")
        if given.ndim == 1 and given.size == groups.n_columns:
            return given.copy()
    if isinstance(active, int | np.integer) and not isinstance(active, bool):
        if not 0 <= active <= groups.n_groups:
            raise ValueError(f"active must lie between 0 and the {groups.n_groups} groups, not {active}.")
        names: Iterable[Hashable] = groups.names[: int(active)]
    else:
        names = [groups.names[l] for l in groups.positions(active, "active")]
    columns = np.concatenate([np.empty(0, dtype=np.intp), *(groups[name] for name in names)])
    w = np.zeros(groups.n_columns)
    if given is None:
        if values != "normal":
            raise ValueError(f"values must be a number, an array or 'normal', not {values!r}.")
        w[columns] = rng.standard_normal(columns.size)
    elif given.ndim > 1 or (given.ndim == 1 and given.size != columns.size):
        raise ValueError(
            f"values must be one number, one per column of the support ({columns.size}) "
            f"or one per column of X ({groups.n_columns}), not shape {given.shape}."
        )
    else:
        w[columns] = given
    return w
