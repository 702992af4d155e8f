"""How fast jobs go: the rate of progress of each model under each configuration, as training advances."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuschedlab._compiled import plain_array
from gpuschedlab._knob import check_kind
from gpuschedlab.cluster.cluster import bare
from gpuschedlab.errors import SpeedError
from gpuschedlab.speeds.build import ARRAYS, arrays_from_frame, decode, join_speeds, listed, summarise
from gpuschedlab.speeds.checks import check_arrays, check_asked, index_of
from gpuschedlab.speeds.codes import ANY, RateTable, rates_of, segments_at
from gpuschedlab.speeds.places import Places
from gpuschedlab.table_display import Table

if TYPE_CHECKING:
    from gpuschedlab.speeds.curves import Curves


@dataclass(frozen=True, eq=False)
class Speeds:
    """Speed tables of M models on T types of GPU: rate by (configuration, progress).

    A configuration is (GPU type, nodes, GPUs), and may name the GPUs on each node, too (`codes`). A rigid job
    is a model with one configuration; an elastic job has many; a job whose statistical efficiency changes has
    many progress segments; a placement slowdown is a lower rate on more nodes. A job without a model here
    progresses 1 s a second.

    Parameters
    ----------
    models : tuple of str
        The M names that a trace's column `model` refers to.
    gpu_types : tuple of str
        The T names that a cluster's types refer to.
    first : (M + 1,) int array
        Entries of model m are first[m] .. first[m + 1] - 1.
    code : (E,) int array
        Configuration codes, ascending within each model (`codes.config_code`, `codes.shape_code`).
    row : (E,) int array
        Where in `rate` the entry's first segment is.
    rate : (R,) float array
        Progress a second, > 0, one for each segment of the model.
    seg_first : (M + 1,) int array
        Segments of model m are seg_first[m] .. seg_first[m + 1] - 1.
    seg_end : (S,) float array
        Progress at which each segment ends, ascending; the last is the total progress (inf allowed).
    relative : (M,) bool array
        True: rates are relative to the trace's `duration`, which is the work in s. False: rates are absolute;
        the work is the job's `target`, or the last segment's end.
    sharing : (M, M) float array, optional
        Speed of i relative to running alone, while it shares all its GPUs with j, each with its own work; > 0,
        nan if unknown: never packed.
    merged : (M, M) float array, optional
        Speed of i relative to running alone, while it is trained jointly with j (spatial transfer): what it needs
        alone over what it needs jointly. It can exceed 1; 0: it never reaches its target so; nan: unknown.
    transfer : (M, M) float array, optional
        transfer[i, j] is the speed of j relative to its own, once it started from the result of i (temporal
        transfer): its time from scratch over its time then; 0 and nan as in `merged`.
    curves : Curves, optional
        Metric at each progress; its models are brought into the order of `models`.
    rounding : float
        Seconds to a multiple of which the engine rounds the time that is left of a segment, at its beginning and whenever
        the job starts or moves, as a simulator in steps does; time below half of it stays as it is. 0: not.
    shapes : dict of int to (int, str), optional
        Type and placement, such as ``1,3,4``, of each shape code.

    Raises
    ------
    SpeedError
        The arrays do not fit together, a rate is not positive, or the curves have a model that is not here.

    Examples
    --------
    >>> columns = ["model", "gpu_type", "n_nodes", "n_gpus", "rate"]
    >>> rows = [("bert", "t4", 1, 1, 3.0), ("bert", "t4", 2, 8, 20.0)]
    >>> frame = pl.DataFrame(rows, schema=columns, orient="row")
    >>> speeds = Speeds.from_frame(frame)
    >>> speeds.rates([0], [0.0], types=[0, 0, 0], nodes=[1, 2, 1], gpus=[1, 8, 8]).tolist()
    [[3.0, 20.0, nan]]
    """

    models: tuple[str, ...]
    gpu_types: tuple[str, ...]
    first: np.ndarray
    code: np.ndarray
    row: np.ndarray
    rate: np.ndarray
    seg_first: np.ndarray
    seg_end: np.ndarray
    relative: np.ndarray
    sharing: np.ndarray | None = None
    merged: np.ndarray | None = None
    transfer: np.ndarray | None = None
    curves: "Curves | None" = None
    rounding: float = 0.0
    shapes: dict[int, tuple[int, str]] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        put = partial(object.__setattr__, self)
        put("models", tuple(self.models))
        put("gpu_types", tuple(self.gpu_types))
        for array_names, dtype in ARRAYS.items():
            for array_name in array_names:
                if getattr(self, array_name) is not None:
                    put(array_name, np.ascontiguousarray(getattr(self, array_name), dtype))
        if self.curves is not None:
            from gpuschedlab.speeds.curves import Curves

            check_kind(self.curves, Curves, SpeedError, "Speeds.curves", "Curves, or None")
            put("curves", self.curves.under(self.models))
        put("_places", Places())
        check_arrays(self)

    @classmethod
    def from_frame(
        cls,
        frame: pl.DataFrame,
        *,
        gpu_types: Iterable[str] | None = None,
        relative: bool = False,
        sharing: dict[tuple[str, str], float] | None = None,
        merged: dict[tuple[str, str], float] | None = None,
        transfer: dict[tuple[str, str], float] | None = None,
        curves: "Curves | None" = None,
        rounding: float = 0.0,
    ) -> "Speeds":
        """Build `Speeds` from a long frame: one row a model, configuration and progress segment.

        Parameters
        ----------
        frame : polars.DataFrame
            `model`, `gpu_type`, `n_gpus`, `rate` (progress a second, > 0); optional `n_nodes` (null: any
            number not listed; with `n_gpus` null, too: any configuration not listed), `progress` (where the
            segment ends; the same for all configurations of a model), `placement` (GPUs on each node such as
            ``431`` or ``16,8``; any rotation is the same; null if only nodes and GPUs count).
        gpu_types : iterable of str, optional
            Order of the types; by default that of first appearance.
        relative : bool
            Whether rates are relative to the trace's durations.
        sharing, merged, transfer : dict, optional
            Entries of these arrays by the two models: {(i, j): factor}.
        curves, rounding
            As for the class.

        Raises
        ------
        SpeedError
            Columns missing, rates not positive, a configuration twice, or segments that differ within a
            model.
        """
        pairs = {"sharing": sharing, "merged": merged, "transfer": transfer}
        return cls(**arrays_from_frame(frame, gpu_types, relative, pairs), curves=curves, rounding=rounding)

    @classmethod
    def join(cls, a: "Speeds", b: "Speeds") -> "Speeds":
        """Put two tables together into one `Speeds`; their models' names must differ.

        Factors of pairs across the two are unknown (nan).

        Raises
        ------
        SpeedError
            A model is in both, or only one rounds times.
        """
        return cls(**join_speeds(a, b))

    def model_codes(self, names: Iterable[str | None]) -> np.ndarray:
        """Return an array (n,) of the indices of models by name; -1 if there is none."""
        wanted = pl.Series("name", names, dtype=pl.Utf8)
        return index_of(wanted, self.models).fill_null(-1).to_numpy()

    def type_codes(self, gpu_types: Iterable[str]) -> np.ndarray:
        """Return an array (T,) of indices into `gpu_types` of a cluster's types, whatever their partitions; -1 for none."""
        index_of_type = {gpu_type: type_number for type_number, gpu_type in enumerate(self.gpu_types)}
        return np.array([index_of_type.get(bare(gpu_type), -1) for gpu_type in gpu_types], np.int64)

    @property
    def total(self) -> np.ndarray:
        """Array (M,) of the progress at which each model's training ends (inf: it is up to the job)."""
        return self.seg_end[self.seg_first[1:] - 1]

    def rates(self, model, progress, types, nodes, gpus) -> np.ndarray:
        """Return an array (n, C) of the progress a second of each job in each configuration.

        Parameters
        ----------
        model : (n,) int array
            Indices into `models`; -1 gives nan.
        progress : (n,) float array
            Progress made; the first segment that ends at or above it applies.
        types, nodes, gpus : (C,) int arrays
            Configurations; types index `gpu_types`.

        Returns
        -------
        (n, C) float array
            nan if the model has no such configuration. A configuration that is known by its placements
            only has none here.

        Raises
        ------
        SpeedError
            Arrays of different lengths, or a model that does not exist.
        """
        model, types, nodes, gpus = (plain_array(codes, np.int64) for codes in (model, types, nodes, gpus))
        progress = plain_array(progress, np.float64)
        check_asked(self, model, progress, types, nodes, gpus)
        if self._places.first_asked(types, nodes, gpus):
            return rates_of(RateTable.of(self), model, progress, types, nodes, gpus)
        has_model = model >= 0
        job_rates = np.full((len(model), len(types)), np.nan)
        known_model = model[has_model]
        rate_places = self.places(types, nodes, gpus)[known_model]
        segment = (
            segments_at(self.seg_first, self.seg_end, known_model, progress[has_model]) - self.seg_first[known_model]
        )
        job_rates[has_model] = np.where(
            rate_places >= 0, self.rate[np.maximum(rate_places, 0) + segment[:, None]], np.nan
        )
        return job_rates

    def places(self, types, nodes, gpus) -> np.ndarray:
        """Return an array (M, C): where in `rate` the first segment of each model under each configuration (C,) is; -1 for none.

        Kept for the configurations asked for lately: a policy asks for the same ones round after round. Types index
        `gpu_types`, -1 for a type that is not there.
        """
        return self._places.of(
            self, *(np.ascontiguousarray(configuration_array, np.int64) for configuration_array in (types, nodes, gpus))
        )

    def types_of(self, model: int) -> set[str]:
        """Return a set of the names of the GPU types on which a model (an index) is known."""
        type_of_entry = self._decoded[0][self.first[model] : self.first[model + 1]]
        return {self.gpu_types[type_number] for type_number in np.unique(type_of_entry)}

    def usable(self, model: np.ndarray, gpus: np.ndarray, types: np.ndarray) -> np.ndarray:
        """Return an array (n, T) of bools: GPU types on which jobs have a speed on so many GPUs (n,), on whatever nodes.

        Model and types are as of `places`.

        Returns
        -------
        (n, T) bool array
            All True without a model, and where no type has a speed: its look-up then names the missing rows.

        Examples
        --------
        >>> frame = pl.DataFrame({"model": "bert", "gpu_type": ["t4", "t4", "k80"], "n_gpus": [1, 2, 2], "rate": [3.0, 5.0, 2.0]})
        >>> Speeds.from_frame(frame).usable([0, 0, -1], [1, 2, 9], np.array([0, 1])).tolist()
        [[True, False], [True, True], [True, True]]
        """
        model = np.asarray(model, np.int64)[:, None]
        gpus = np.asarray(gpus, np.int64)[:, None]
        demand_code = (model * len(self.gpu_types) + types) << 20
        has_speed = (np.isin(demand_code + gpus, self._demands) | np.isin(demand_code + ANY, self._demands)) & (
            types >= 0
        )
        return has_speed | (model < 0) | ~has_speed.any(axis=1, keepdims=True)

    @cached_property
    def _decoded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str | None]]:
        """Tuple of the type, nodes, GPUs (ANY: any number) of each configuration, arrays, and of its placement, a list."""
        return decode(self.code, self.shapes)

    @cached_property
    def _demands(self) -> np.ndarray:
        """Array of the model, type and GPUs of each configuration as one number."""
        type_of_entry, _, gpus, _ = self._decoded
        model = np.repeat(np.arange(len(self.models)), np.diff(self.first))
        return ((model * len(self.gpu_types) + type_of_entry) << 20) + gpus

    def segment_ends(self, model, progress) -> np.ndarray:
        """Return an array (n,): progress up to which each job's rates hold; inf in the last segment, or without a model (-1).

        Examples
        --------
        >>> frame = pl.DataFrame({"model": "bert", "gpu_type": "t4", "n_gpus": 1, "rate": [3.0, 2.0], "progress": [9.0, 20]})
        >>> Speeds.from_frame(frame).segment_ends([0, 0, -1], [9.0, 9.5, 0.0]).tolist()
        [9.0, inf, inf]
        """
        model = np.asarray(model, np.int64)
        progress = np.asarray(progress, np.float64)
        segment_entry = segments_at(self.seg_first, self.seg_end, model, progress)
        return np.where(
            (segment_entry < 0) | (segment_entry == self.seg_first[model + 1] - 1), np.inf, self.seg_end[segment_entry]
        )

    def configurations(self, model: str | None = None) -> pl.DataFrame:
        """Return a frame of the known rates, one row a configuration.

        Columns `model, gpu_type, n_nodes, n_gpus, placement, rate` (that of the first segment); nodes and GPUs are null where
        they stand for any number.

        Raises
        ------
        SpeedError
            There is no such model.
        """
        if model is not None and model not in self.models:
            raise SpeedError(f"Speeds: found no model {model!r}; expected one of {', '.join(self.models)}.")
        frame = listed(self, *self._decoded)
        return frame if model is None else frame.filter(model=model)

    def summary(self) -> pl.DataFrame:
        """Return a frame with one row a model: GPU types, configurations, segments, total progress, slowest and fastest rate."""
        return summarise(self, self._decoded[0])

    def __repr__(self):
        return f"Speeds({len(self.models)} models on {', '.join(self.gpu_types)}; {len(self.code)} configurations)"

    def _repr_html_(self):
        return f"<p>{escape(repr(self))}</p>{Table(self.summary())._repr_html_()}"
