"""TermGroups: keep the columns that come from one variable together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class TermGroups:
    """Groups the output columns of a transformer by the input variable they come from.

    One-hot, spline and polynomial transformers name their output columns after the input: ``age_sp_0``, ``sex_male``,
    ``spline__age_sp_0``. Each output column is assigned to the longest input name that it starts with, so that one-hot
    and spline blocks stay together. Pass it to an estimator as ``groups=``; it is called in `fit`, when the column
    names are known.

    Parameters
    ----------
    inputs : iterable of str
        The names of the variables before the transformer.
    outputs : iterable of str, optional
        The names of its output columns, as returned by ``get_feature_names_out()``; needed for an X without column
        names, such as an array or a sparse matrix. `from_transformer` takes both from a fitted transformer.

    Examples
    --------
    >>> from covey import TermGroups
    >>> TermGroups(["age", "age_of_car"])(["spline__age_sp_0", "age_of_car_sp_0", "age_sp_1", "age_of_car"])
    ['age', 'age_of_car', 'age', 'age_of_car']

    In a pipeline:

    >>> from sklearn.compose import ColumnTransformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder, SplineTransformer
    >>> from covey import GroupSparseRegressor
    >>> columns = ColumnTransformer([("spline", SplineTransformer(), ["age"]), ("hot", OneHotEncoder(), ["sex"])])
    >>> model = make_pipeline(
    ...     columns.set_output(transform="pandas"), GroupSparseRegressor(groups=TermGroups(["age", "sex"]))
    ... )
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...] | None = field(default=None, compare=False)

    def __init__(self, inputs: Iterable[str], outputs: Iterable[str] | None = None) -> None:
        object.__setattr__(self, "inputs", tuple(str(name) for name in inputs))
        object.__setattr__(self, "outputs", None if outputs is None else tuple(str(name) for name in outputs))

    @classmethod
    def from_transformer(cls, transformer: BaseEstimator) -> TermGroups:
        """Take the names from a transformer that was fitted on a DataFrame; its output then needs no column names.

        >>> import pandas as pd
        >>> from sklearn.preprocessing import OneHotEncoder
        >>> from covey import GroupSparseRegressor, TermGroups
        >>> data = pd.DataFrame({"site": list("abcd") * 10, "sex": list("mfffm") * 8})
        >>> encoder = OneHotEncoder().fit(data)
        >>> model = GroupSparseRegressor(groups=TermGroups.from_transformer(encoder), selection="bic")
        >>> model.fit(encoder.transform(data), 2.0 * (data["site"] == "b")).selected_groups_  # a sparse matrix
        ['site']
        """
        names = getattr(transformer, "feature_names_in_", None)
        if names is None:
            raise ValueError("The transformer has no column names: fit it on a DataFrame first.")
        return cls(names, transformer.get_feature_names_out())

    def __call__(self, columns: Sequence[str]) -> list[str]:
        """The input variable of each output column."""
        return [self._source(str(column)) for column in columns]

    def _source(self, column: str) -> str:
        # "spline__age_sp_0" -> "age_sp_0": without the prefix that a ColumnTransformer adds
        candidates = [column, column.split("__", 1)[-1]]
        found = [
            name
            for name in self.inputs
            if any(part == name or part.startswith((f"{name}_", f"{name} ", f"{name}^")) for part in candidates)
        ]
        if not found:
            raise ValueError(
                f"Column {column!r} starts with none of the inputs {', '.join(map(repr, self.inputs[:6]))}"
                f"{', ...' if len(self.inputs) > 6 else ''}; add its variable to TermGroups."
            )
        return max(found, key=len)
