"""Many regression problems on one tensor, in working coordinates: the batched version of `covey.preprocess`.

Every problem has its own response and row weights, hence its own means, factors and correlations. Groups are padded to
the size of the largest: a tensor over columns has shape (problems, groups, size), with zeros as padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from covey.designs.cholesky import DOUBTFUL
from covey.designs.torch import TorchDesign
from covey.designs.torch_groups import orthonormal_factors
from covey.groups import Groups
from covey.preprocess import Standardize
from covey.validation import FloatArray

__all__ = ["Padding", "Problems", "prepare_many"]

# Columns are read as float64, and multiplied within their groups, in pieces of about this many bytes.
PIECE_BYTES = {"cuda": 2**29, "cpu": 2**24}


@dataclass(frozen=True)
class Padding:
    """Groups padded to one size.

    Attributes
    ----------
    columns : tensor of int, shape (groups, size)
        Columns of X; column 0 where padded.
    real : tensor of bool, shape (groups, size)
    whole : bool
        Whether these are the columns of X in order, without padding.
    """

    columns: torch.Tensor
    real: torch.Tensor
    whole: bool

    @classmethod
    def of(cls, groups: Groups, device: torch.device) -> Padding:
        """The padding of a partition."""
        sizes, size = groups.sizes, int(groups.sizes.max())
        real = np.arange(size) < sizes[:, None]
        columns = np.zeros(real.shape, dtype=np.int64)
        columns[real] = groups.members
        whole = bool(real.all()) and groups.is_contiguous
        return cls(torch.as_tensor(columns, device=device), torch.as_tensor(real, device=device), whole)

    def spread(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows over the columns of X in the padded layout; padded entries are meaningless."""
        own = rows if self.whole else rows[:, self.columns.flatten()]
        return own.view(rows.shape[0], *self.columns.shape)


@dataclass
class Problems:
    """Many problems; every tensor but X has one entry per problem along its first axis.

    Attributes
    ----------
    X : tensor, shape (n, p)
    padding : Padding
    q, y : tensors, shape (m, n)
        Row weights that sum to one, and responses with mean zero and unit mean square.
    y_mean, y_scale, column_scale : tensors, shape (m,)
        As in `covey.preprocess.WorkingProblem`.
    mean : tensor, shape (m, groups, size)
        Column means.
    T : tensor, shape (m, groups, size, size)
        Factors: working columns are ``(X_l - mean_l) T_l``; zero beyond the rank.
    ranks : tensor of int, shape (m, groups)
    c : tensor, shape (m, groups, size)
        Correlations at w = 0.
    """

    X: torch.Tensor
    padding: Padding
    q: torch.Tensor
    y: torch.Tensor
    y_mean: torch.Tensor
    y_scale: torch.Tensor
    column_scale: torch.Tensor
    mean: torch.Tensor
    T: torch.Tensor
    ranks: torch.Tensor
    c: torch.Tensor

    def working(self, G: torch.Tensor) -> torch.Tensor:
        """Correlations with the columns of X, shape (m, p), as correlations with the working columns."""
        own = self.padding.spread(G)
        out = torch.empty_like(self.c)
        # in parts, because the product is as large as all factors together
        for a in range(0, own.shape[0], 64):
            part = slice(a, a + 64)
            out[part] = (own[part, :, :, None] * self.T[part]).sum(dim=2)
        return out

    def columns(self, problem: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
        """Working columns of pairs of a problem and a group, as rows; shape (pairs, size, n)."""
        own = self.X[:, self.padding.columns[group].flatten()].view(self.X.shape[0], group.numel(), -1)
        Z = own.permute(1, 0, 2) - self.mean[problem, group][:, None, :]
        return (Z.to(self.X.dtype) @ self.T[problem, group]).transpose(1, 2)


def prepare_many(
    design: TorchDesign,
    responses: FloatArray,
    weights: FloatArray,
    groups: Groups,
    *,
    standardize: Standardize,
    fit_intercept: bool,
) -> Problems:
    """Transform problems to working coordinates, reading X once.

    Parameters
    ----------
    responses, weights : ndarrays, shape (m, n)
        The weights of each problem sum to one.
    """
    X, m = design.X, weights.shape[0]
    padding = Padding.of(groups, X.device)
    L, size = padding.columns.shape
    standard = [design.standard(y, q, centre=fit_intercept) for y, q in zip(responses, weights, strict=True)]
    y, q = design.put(np.stack([unit for unit, _, _ in standard])), design.put(weights)
    mean = torch.zeros((m, L, size), dtype=torch.float64, device=X.device)
    T = torch.zeros((m, L, size, size), dtype=X.dtype, device=X.device)
    ranks = torch.zeros((m, L), dtype=torch.int64, device=X.device)
    c = torch.zeros_like(mean)
    roots = torch.zeros(m, dtype=torch.float64, device=X.device)
    per_group = 8 * size * size * max(X.shape[0], 4 * m)
    step = max(1, PIECE_BYTES[X.device.type] // per_group)
    for a in range(0, L, step):
        own = slice(a, min(a + step, L))
        Z, shift, gain = _piece(design, padding, own, fit_intercept)
        total = (q @ Z.flatten(1)).view(m, -1, size)
        cross = ((q * y) @ Z.flatten(1)).view(m, -1, size)
        blocks = (q @ (Z[:, :, :, None] * Z[:, :, None, :]).flatten(1)).view(m, -1, size, size)
        if fit_intercept:
            blocks -= total[..., :, None] * total[..., None, :]
            mean[:, own] = (shift + total / gain) * padding.real[own]
        variance = blocks.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)
        root = variance.sqrt()
        # a column whose spread is round-off error of its mean is constant
        alive = root > 8 * np.finfo(float).eps * (mean[:, own] * gain).abs()
        inverse = torch.where(alive, 1.0 / root, 0.0)
        if standardize == "group":
            A = blocks * inverse[..., :, None] * inverse[..., None, :]
            factor, rank, certain = orthonormal_factors(A)
            if not bool(certain.all()):
                _refine(factor, ~certain, Z, total, inverse, q, fit_intercept)
            factor = factor * inverse[..., :, None]
        else:
            if standardize == "block":
                # one scale for the columns of a group, in their own units
                spread = root / gain * alive
                largest = spread.amax(dim=-1, keepdim=True)
                unit = torch.where(largest > 0, largest, 1.0)
                live = alive.sum(dim=-1, keepdim=True).clamp_min(1)
                squares = ((spread / unit) ** 2).sum(dim=-1, keepdim=True) / live
                inverse = alive / gain / (unit * torch.where(squares > 0, squares, 1.0).sqrt())
            factor = torch.diag_embed(alive / gain if standardize is False else inverse)
            rank = alive.sum(dim=-1)
            roots = torch.maximum(roots, (root / gain * alive).flatten(1).amax(dim=1))
        c[:, own] = (cross[..., :, None] * factor).sum(dim=2)
        T[:, own] = (factor * gain[..., :, None]).to(X.dtype)
        ranks[:, own] = rank
    column_scale = torch.ones_like(roots)
    if standardize is False:
        # one scale for all columns: the largest has unit variance
        column_scale = torch.where(roots > 0, roots, 1.0)
        unit = column_scale[:, None, None]
        T /= unit[..., None].to(X.dtype)
        c /= unit
    y_mean, y_scale = (design.put(np.array([made[i] for made in standard])) for i in (1, 2))
    return Problems(X, padding, q, y, y_mean, y_scale, column_scale, mean, T, ranks, c)


def _piece(
    design: TorchDesign, padding: Padding, own: slice, centre: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Columns of some groups in float64, minus `shift`, times a power of two `gain` that brings them near 1."""
    X = design.X
    real = padding.real[own]
    raw = X[:, padding.columns[own].flatten()].double().view(X.shape[0], *real.shape)
    if not bool(torch.isfinite(raw.sum())):
        design.refuse(np.flatnonzero(~np.isfinite(design.largest())))
    shift = raw.mean(dim=0) if centre else torch.zeros_like(raw[0])
    Z = raw.sub_(shift)
    exponent = torch.frexp(Z.abs().amax(dim=0)).exponent
    gain = torch.ldexp(torch.ones_like(shift), -exponent)
    return Z.mul_(gain * real), shift, gain


def _refine(
    T: torch.Tensor,
    doubtful: torch.Tensor,
    Z: torch.Tensor,
    total: torch.Tensor,
    inverse: torch.Tensor,
    q: torch.Tensor,
    centre: bool,
) -> None:
    """Orthonormalise nearly dependent groups once more, on the columns themselves, in place.

    A first factor from the Gram block makes columns nearly orthonormal; a second one, from their Gram block, recovers
    the digits lost in the first (Cholesky QR, twice).
    """
    problem, group = doubtful.nonzero().unbind(dim=1)
    step = max(1, PIECE_BYTES[Z.device.type] // (8 * Z.shape[0] * Z.shape[2]))
    for a in range(0, problem.numel(), step):
        i, l = problem[a : a + step], group[a : a + step]
        own = Z[:, l].permute(1, 0, 2) - (total[i, l][:, None, :] if centre else 0.0)
        first = inverse[i, l][:, :, None] * T[i, l]
        made = own @ first
        blocks = (made * q[i][:, :, None]).transpose(1, 2) @ made
        size = blocks.diagonal(dim1=1, dim2=2).clamp_min(DOUBTFUL).sqrt()
        second, _, _ = orthonormal_factors(blocks / size[:, :, None] / size[:, None, :])
        T[i, l] = T[i, l] @ (second / size[:, :, None])
