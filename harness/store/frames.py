"""The three tables of a run as pandas frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from harness.store.schema import CELLS, REQUESTS, ROUNDS

if TYPE_CHECKING:
    import pandas as pd


class Frames(NamedTuple):
    """What a run measured. Columns are those of `harness.store.schema`; `cell_id` joins them.

    In `requests` and `rounds`, `cell_id` is categorical and list columns stay Arrow arrays, so that tens of
    millions of rounds fit in memory. Only cells with status `ok` have requests and rounds.
    """

    cells: pd.DataFrame
    requests: pd.DataFrame
    rounds: pd.DataFrame


def to_frames(cells: list[pa.Table], requests: list[pa.Table], rounds: list[pa.Table]) -> Frames:
    """Join the tables of the cells of a run; an empty list gives an empty frame with all columns."""
    return Frames(
        cells=pa.concat_tables([CELLS.empty_table(), *cells]).to_pandas(),
        requests=_rows_frame(requests, REQUESTS),
        rounds=_rows_frame(rounds, ROUNDS),
    )


def _rows_frame(tables: list[pa.Table], schema: pa.Schema) -> pd.DataFrame:
    import pandas as pd

    columns = tables[0].column_names if tables else schema.names
    empty = schema.empty_table().select(columns)
    joined = pa.concat_tables([_encoded(table) for table in [empty, *tables]]).unify_dictionaries()
    frame: pd.DataFrame = joined.to_pandas(
        types_mapper=lambda kind: pd.ArrowDtype(kind) if pa.types.is_list(kind) else None
    )
    return frame


def _encoded(table: pa.Table) -> pa.Table:
    """Without schema metadata and with `cell_id`, one value a file, as a dictionary."""
    at = table.column_names.index("cell_id")
    return table.replace_schema_metadata(None).set_column(at, "cell_id", table["cell_id"].dictionary_encode())
