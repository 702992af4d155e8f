"""Public names of `traces`, by module; loaded at first use. Those of papers stand in the stubs of their folders."""

from .formats.export import write_csv as write_csv, write_swf as write_swf
from .fetching import catalog as catalog, fetch as fetch
from .generator.calibration import calibrate as calibrate
from .generator.generate import generate as generate, week_loads as week_loads
from .generator.presets import Calibration as Calibration, load_preset as load_preset, presets as presets
from .logs.ledger import Intake as Intake, Report as Report
from .formats.parquet import read_parquet as read_parquet, write_parquet as write_parquet
from .intake.read import read as read
from .schema import SCHEMA as SCHEMA, validate as validate
from .deadlines import value_table as value_table
from .tools import (
    describe as describe,
    known_at as known_at,
    offered_load as offered_load,
    scale_load as scale_load,
    slice_trace as slice_trace,
    split as split,
)
