"""Write down what each table of the reference data that has a public source holds: rows, checksum, columns."""

import sys
from pathlib import Path

import polars as pl

from reproduce.reference.artifacts import RECIPES
from reproduce.reference.build import TABLES, checksum


def make(folder: Path) -> str:
    """Return the lines of tables.csv."""
    lines = ["file,rows,sha256,columns"]
    for file in RECIPES:
        frame = (pl.read_csv if file.endswith(".csv") else pl.read_parquet)(folder / file)
        columns = " ".join(f"{name}:{kind.base_type()}" for name, kind in frame.schema.items())
        lines.append(f"{file},{frame.height},{checksum(frame)},{columns}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLES.write_text(make(Path(sys.argv[1])))
