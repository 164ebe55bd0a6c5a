"""A folder of Parquet files, one after another: a design with named columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from covey.designs.row_blocks import MEMORY_BUDGET, RowBlocks
from covey.optional import optional
from covey.validation import Array, Dtype, name_columns

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema
    from pyarrow.parquet import FileMetaData, ParquetFile


class ParquetDesign(RowBlocks):
    """The rows of all Parquet files of a folder, in the order of their names, streamed in row blocks.

    Parameters
    ----------
    path : path
        A folder with .parquet files, or one such file.
    columns : sequence of str, optional
        The columns of X, in this order; by default all columns of the files except those in `drop`.
    drop : sequence of str
        Columns to leave out, for instance the response, which `column` reads.
    dtype : dtype, optional
        float32 or float64 to compute in. The default is float32 if all columns are float32, otherwise float64.
    memory_budget : int
        Memory for row blocks, in bytes. The row groups of the files should not be larger: one is decoded at a time.
    name : str
        The name of X in messages.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pathlib, tempfile
    >>> from covey import GroupSparseRegressor
    >>> from covey.designs import ParquetDesign
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.standard_normal((300, 12)), columns=[f"x{j}" for j in range(12)])
    >>> table["price"] = table[["x0", "x1", "x2"]].sum(axis=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table[:200].to_parquet(pathlib.Path(folder, "part-0.parquet"))
    ...     table[200:].to_parquet(pathlib.Path(folder, "part-1.parquet"))
    ...     design = ParquetDesign(folder, drop=["price"])
    ...     model = GroupSparseRegressor(groups=3, random_state=0).fit(design, design.column("price"))
    >>> model.selected_groups_, design.shape
    ([0], (300, 12))
    """

    def __init__(
        self,
        path: str | Path,
        columns: str | Sequence[str] | None = None,
        *,
        drop: str | Sequence[str] = (),
        dtype: DTypeLike | None = None,
        memory_budget: int = MEMORY_BUDGET,
        name: str = "X",
    ) -> None:
        self.path = Path(path)
        self._footers: dict[Path, FileMetaData] = {}
        if not self.path.exists():
            raise FileNotFoundError(f"There is no file or folder {path}.")
        self.files = [self.path] if self.path.is_file() else sorted(self.path.rglob("*.parquet"))
        if not self.files:
            raise FileNotFoundError(f"The folder {path} holds no .parquet files.")
        schema = self._open(self.files[0]).schema_arrow
        columns, drop = [columns] if isinstance(columns, str) else columns, [drop] if isinstance(drop, str) else drop
        chosen = [c for c in (schema.names if columns is None else columns) if c not in set(drop)]
        _find(schema, [*chosen, *drop], self.files[0])
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"columns names {max(chosen, key=chosen.count)!r} more than once.")
        self._types = {c: schema.field(c).type for c in chosen}
        self._counts = [self._rows_of(file) for file in self.files]
        if not chosen or sum(self._counts) == 0:
            raise ValueError(f"{self.path} holds {sum(self._counts)} rows and {len(chosen)} columns for {name}.")
        shape = sum(self._counts), len(chosen)
        super().__init__(
            shape, self._stored_type(), dtype,
            where=str(path), memory_budget=memory_budget, columns=chosen, name=name,
        )  # fmt: skip

    def column(self, name: str) -> Array:
        """Any column of the files, for instance the response: numbers as float64, anything else as it is stored."""
        for file in self.files:
            _find(self._open(file).schema_arrow, [name], file)
        batches = (batch for file in self.files for batch in self._batches(file, [name]))
        values = np.concatenate([batch.column(0).to_numpy(zero_copy_only=False) for batch in batches])
        return values.astype(np.float64) if values.dtype.kind in "fiu" else values

    def stream(self) -> Iterator[Array]:
        """All rows, block after block; a block never spans two files."""
        for file, count in zip(self.files, self._counts, strict=True):
            done = 0
            for batch in self._batches(file, self.columns):
                done += batch.num_rows
                yield self._to_array(batch)
            if done != count:
                raise ValueError(f"{file} had {count} rows, but now has {done}.")

    def check(self) -> None:
        """Raise if a file is gone."""
        for file in self.files:
            if not file.is_file():
                raise FileNotFoundError(f"{file}, which holds rows of {self.name}, no longer exists.")

    # ------------------------------------------------------------------ files and types

    def _batches(self, file: Path, columns: Sequence[str] | None) -> Iterator[RecordBatch]:
        """The rows of a file, block after block."""
        opened = self._open(file)
        try:
            yield from opened.iter_batches(batch_size=self.block_rows, columns=columns)
        except Exception as error:
            raise ValueError(f"{file} is damaged: its rows cannot be read ({error}). Write it again.") from error

    def _open(self, file: Path) -> ParquetFile:
        with optional("Reading Parquet"):
            import pyarrow.parquet as pq
        try:
            opened = pq.ParquetFile(file, metadata=self._footers.get(file))
            # the footer of a file with thousands of columns takes longer to parse than some blocks to read
            self._footers[file] = opened.metadata
            return opened
        except FileNotFoundError:
            raise FileNotFoundError(f"{file}, which holds rows of {self.path}, no longer exists.") from None
        except Exception as error:
            raise ValueError(f"{file} cannot be read as Parquet ({error}).") from error

    def _rows_of(self, file: Path) -> int:
        """The number of rows of a file, which must have the columns of the first file."""
        opened = self._open(file)
        schema = opened.schema_arrow
        _find(schema, list(self._types), file)
        for column, kind in self._types.items():
            if schema.field(column).type != kind:
                raise ValueError(
                    f"{file}: column {column!r} holds {schema.field(column).type}, but {kind} in {self.files[0].name}. "
                    "Write the files again with one type per column."
                )
        return int(opened.metadata.num_rows)

    def _stored_type(self) -> Dtype:
        """The precision of all columns together, which must hold numbers."""
        import pyarrow.types as kinds

        floats = [kinds.is_floating(kind) for kind in self._types.values()]
        for (column, kind), floating in zip(self._types.items(), floats, strict=True):
            if not (floating or kinds.is_integer(kind) or kinds.is_boolean(kind)):
                raise ValueError(
                    f"{self.files[0]}: column {column!r} holds {kind}, not numbers: leave it out with drop=, or encode "
                    "it (for instance with scikit-learn's OneHotEncoder)."
                )
        self._all_floats, single = all(floats), all(kinds.is_float32(kind) for kind in self._types.values())
        return np.dtype(np.float32 if single else np.float64)

    def _to_array(self, batch: RecordBatch) -> Array:
        """A batch of rows in C order; nulls become NaN and are reported as missing values later."""
        if self._all_floats:
            return np.ascontiguousarray(batch.to_tensor(null_to_nan=True).to_numpy(), dtype=self.dtype)
        out = np.empty((batch.num_rows, batch.num_columns), dtype=self.dtype)
        for j in range(batch.num_columns):
            out[:, j] = batch.column(j).to_numpy(zero_copy_only=False)
        return out


def _find(schema: Schema, columns: Sequence[str], file: Path) -> None:
    """Raise if a file lacks columns."""
    known = set(schema.names)
    lacking = [c for c in columns if c not in known]
    if lacking:
        raise ValueError(
            f"{file} has no {name_columns(range(len(lacking)), lacking)}; its columns begin "
            f"{', '.join(map(repr, schema.names[:6]))}. All files must have the same columns."
        )
