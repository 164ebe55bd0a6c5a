"""AnnData: X, y and groups of annotated tables of cells and genes, without importing the library that defines them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from covey.designs import BackedDesign, Design, as_design
from covey.designs.protocol import KINDS
from covey.groups import Groups
from covey.tables.complaint import near


def from_anndata(
    adata: Any, y: Any = None, groups: Any = None, *, layer: str | None = None
) -> tuple[Design, Any, Groups]:
    """X, y and groups of an AnnData object, ready for `fit`; the names of its variables are kept.

    Parameters
    ----------
    adata : AnnData
        In memory or backed by a file, which is only read: its X is then streamed in blocks of rows.
    y : str or array-like, optional
        ``"obs:age"`` is the column "age" of ``adata.obs``; anything else is returned unchanged.
    groups : str or anything that ``groups=`` takes, optional
        ``"var:pathway"`` is the column "pathway" of ``adata.var``: one group per value, and a variable without a value
        is a group of its own. By default, every variable is a group.
    layer : str, optional
        The layer to use instead of X.

    Returns
    -------
    X : Design
    y : ndarray or None
    groups : Groups

    Examples
    --------
    >>> X, y, groups = from_anndata(adata, y="obs:age", groups="var:pathway")  # doctest: +SKIP
    >>> GroupSparseRegressor(groups).fit(X, y)  # doctest: +SKIP
    """
    wanted = ("X", "obs", "var", "layers", "obs_names", "var_names")
    if missing := [name for name in wanted if not hasattr(adata, name)]:
        raise ValueError(f"adata is a {type(adata).__name__} without {missing[0]!r}; it must be an AnnData object.")
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"adata has no layer {layer!r}: {near(layer, list(adata.layers.keys()))}")
    stored, names = adata.X if layer is None else adata.layers[layer], list(map(str, adata.var_names))
    where = "adata.X" if layer is None else f"adata.layers[{layer!r}]"
    if stored is None:
        raise ValueError("adata.X is empty: name a layer with layer=.")
    response = _column(adata.obs, y, "obs")
    if response is not None and response.isna().any():
        first = adata.obs_names[int(np.argmax(response.isna()))]
        raise ValueError(f"y: {response.isna().sum()} rows have no {y!r}, the first is {first!r}; leave them out.")
    labels = _column(adata.var, groups, "var")
    if labels is not None:
        given = [label if isinstance(label, int | np.integer) else str(label) for label in labels]
        alone = labels.isna().to_numpy()
        labels = [name if gap else label for name, label, gap in zip(names, given, alone, strict=True)]
        counts = Counter(labels)
        if twice := [labels[j] for j in np.flatnonzero(alone) if counts[labels[j]] > 1]:
            raise ValueError(
                f"groups: variable {twice[0]!r} has no {groups!r}, and another group has its name: rename it, or give "
                "it a value."
            )
    in_memory = isinstance(stored, np.ndarray) or type(stored).__module__.partition(".")[0] in KINDS
    if in_memory or sp.issparse(stored):
        X = as_design(stored, name=where)
        X.columns = names
    else:
        X = BackedDesign(stored, columns=names, name=where)
    X.row_names = np.array(list(map(str, adata.obs_names)), dtype=object)
    return (
        X,
        y if response is None else response.to_numpy(),
        Groups.coerce(groups if labels is None else labels, X.shape[1], names),
    )


def _column(table: Any, given: Any, prefix: str) -> Any:
    """The column that ``"obs:NAME"`` or ``"var:NAME"`` names; None for anything else."""
    if isinstance(given, str) and given in table.columns:
        raise ValueError(f"{given!r} is a column of adata.{prefix}: give '{prefix}:{given}'.")
    if not isinstance(given, str) or not given.startswith(f"{prefix}:"):
        return None
    name = given.removeprefix(f"{prefix}:")
    if name not in table.columns:
        raise ValueError(f"adata.{prefix} has no column {name!r}: {near(name, list(map(str, table.columns)))}")
    return table[name]
