"""Programs in files: numpy archives, equal to the bit, and MPS, which other solvers read."""

import gzip
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gpuschedlab._extras import need
from gpuschedlab._files import UNREADABLE, reason, whole
from gpuschedlab.errors import SolverError

FIELDS = ("c", "row_lower", "row_upper", "lower", "upper", "integrality", "maximize", "name")


def write_program(program, path) -> None:
    """As `Program.write`."""
    highs = _highs(path)
    A = program.A
    with whole(Path(path)) as part_file, tempfile.TemporaryDirectory() as folder, part_file.open("wb") as program_file:
        if highs is None:
            put = {field: getattr(program, field) for field in FIELDS} | {"shape": program.shape or ()}
            return np.savez_compressed(program_file, **put, data=A.data, indices=A.indices, indptr=A.indptr)
        bounds = program.lower, program.upper, program.row_lower, program.row_upper
        matrix_arrays = (
            A.indptr.astype(np.int32),
            A.indices.astype(np.int32),
            A.data,
            program.integrality.astype(np.int32),
        )
        highs.passModel(
            *A.shape[::-1], A.nnz, 1, -1 if program.maximize else 1, 0.0, program.c, *bounds, *matrix_arrays
        )
        highs.writeModel(str(plain := Path(folder, "program.mps")))  # plain text, whatever the ending
        program_file.write(
            gzip.compress(plain.read_bytes(), mtime=0) if str(path).endswith(".gz") else plain.read_bytes()
        )


def read_program(path, kind):
    """Read a `Program` as `Program.read`; `kind` is that class."""
    highs = _highs(path)
    path = Path(path)
    try:
        if highs is None:
            with np.load(path, allow_pickle=False) as archive:
                put = {field: archive[field] if archive[field].ndim else archive[field].item() for field in FIELDS}
                *A, shape = (archive[field] for field in ("data", "indices", "indptr", "shape"))
            put["shape"] = tuple(shape.tolist()) or None
        else:
            put, A = _from_mps(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes(), highs)
        program_size = (len(put["row_lower"]), len(put["c"]))
        return kind(A=sp.csc_array(tuple(A), shape=program_size), **put)
    except (*UNREADABLE, zipfile.BadZipFile, KeyError, TypeError) as error:
        raise SolverError(f"{path}: found {reason(error)}; expected what Program.write made.") from error


def _highs(program_path):
    if not str(program_path).endswith((".npz", ".mps", ".mps.gz")):
        raise SolverError(f"{program_path}: found another ending; expected .npz, .mps or .mps.gz.")
    highs = None if str(program_path).endswith(".npz") else need("highspy", "MPS files").Highs()
    return highs and (highs.setOptionValue("output_flag", False), highs)[1]


def _from_mps(raw: bytes, highs) -> tuple[dict, tuple]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.mps").write_bytes(raw)
        failed = int(highs.readModel(str(Path(folder, "program.mps")))) < 0
        lp = highs.getLp()
    variable_kinds = [int(variable_kind) for variable_kind in lp.integrality_] or np.zeros(lp.num_col_)
    if failed or lp.offset_ or np.max(variable_kinds, initial=0) > 1:
        raise ValueError("what HiGHS does not read as a linear or mixed-integer program")
    put = {field: getattr(lp, f"{field}_") for field in FIELDS[1:3]} | {
        "c": lp.col_cost_,
        "integrality": variable_kinds,
    }
    put |= {"lower": lp.col_lower_, "upper": lp.col_upper_, "maximize": int(lp.sense_) < 0, "name": lp.model_name_}
    return put, (lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_)
