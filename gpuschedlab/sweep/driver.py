"""Run the cells of a sweep on whatever joblib runs on, and keep each as it comes."""

import contextlib
import warnings
from collections import Counter
from concurrent.futures.process import BrokenProcessPool

from gpuschedlab._extras import need
from gpuschedlab.errors import RunError
from gpuschedlab.sweep.identity import code_of_package
from gpuschedlab.sweep.plan import Plan, make_plan, portable
from gpuschedlab.sweep.result import Sweep, varied
from gpuschedlab.sweep.store import Store
from gpuschedlab.sweep.work import Given, Outcome, forget, packed, work

DEATHS = 3
"""Times that a worker may be killed while a cell is under way before the cell is run alone."""

EVERY = 50
"""Of so many cells, in order, the first has its books added up."""

WAIT = 60
"""Seconds without any Dask worker after which a sweep gives up."""

KILLED = (
    "its worker was killed while it ran it alone: too little memory, or a crash. Give it more memory or fewer jobs."
)


def sweep(
    scenario,
    policies,
    folder,
    *,
    seeds=1,
    measure: dict | None = None,
    workers: int | None = None,
    keep_runs: bool = False,
    strict: bool = True,
    progress: bool = True,
) -> Sweep:
    """Run every policy in every scenario with every seed, and return a `Sweep`; each result is kept as soon as it is there.

    Whatever stops it (Ctrl-C, a kill, a full disk, a power cut), the same call resumes from the cells that are
    finished. A cell is known by the content of all that it depends on, so the folder may also be used for a sweep
    that requests more, or other cells. Of one cell in fifty the books are added up again (`Sweep.wrong`). With
    ``joblib.parallel_config(backend="dask")`` around it, the cells run on a Dask cluster; results are the same bytes.

    Parameters
    ----------
    scenario : Scenario, callable, or list or dict of them
        Scenarios of the policies; `cross` makes a dict of traces x clusters. A function of the seed makes a scenario, with
        another trace or other failures; a frozen dataclass with `__call__(seed)` is called on the workers. A name that is a
        pair names the cluster, too.
    policies : Policy, list, or dict of str to either
        Policies, pairs (policy, estimator) and lists of them such as `grid` makes; under the names of a dict, or of
        their classes. A pair's estimator, or the one that a function of the seed makes in its place, replaces the scenario's.
    folder : path
        Folder of the results.
    seeds : int or iterable of int
        How many, from 0 on, or which; each takes the place of the scenario's.
    measure : dict, optional
        Options of `metrics.summary`, such as ``{"prices": 2.0}``.
    workers : int, optional
        Processes; -1: as many as cores; None: as `joblib.parallel_config` says, otherwise this process alone.
    keep_runs : bool
        Whether each cell's whole run is kept, too (``Run.from_parquet(folder / "runs" / cell)``).
    strict : bool
        Whether failed cells are an error at the end, or only in `.failed`.
    progress : bool
        Whether a bar shows how far it is.

    Returns
    -------
    Sweep

    Raises
    ------
    RunError
        Some cells failed (`strict`), the folder cannot be written, or another sweep is at work there.
    PolicyError, TraceError, ClusterError
        The request is impossible: raised before anything is computed.

    Examples
    --------
    >>> import tempfile
    >>> from gpuschedlab import Cluster, Fifo, Scenario, Themis
    >>> from gpuschedlab.sweep import grid
    >>> from gpuschedlab.check.samples import small_trace
    >>> policies = [Fifo(), *grid(Themis, f=[0.2, 0.8])]
    >>> def week(seed):
    ...     return Scenario(small_trace(rng=seed), Cluster.homogeneous(2, 8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = sweep(week, policies, folder, seeds=2)
    >>> found.frame.select("policy", "f", "seed").rows()[:4]
    [('fifo', None, 0), ('themis', 0.2, 0), ('themis', 0.8, 0), ('fifo', None, 1)]
    """
    plan = make_plan(scenario, policies, seeds=seeds, measure=measure)
    store = Store(folder)
    knobs = varied(plan)
    with store.held():
        done = store.metrics(plan.cells)
        if again := store.outdated(plan.rows, done):
            cells_in_words = "1 cell" if again == 1 else f"{again} cells"
            warnings.warn(
                f"sweep: {cells_in_words} in {folder} came of other code, data or versions: measured again.",
                stacklevel=2,
            )
        store.keep_rows(plan.rows, knobs)
        cells_left = [
            cell_key for cell_key in plan.cells if cell_key not in done or (keep_runs and not store.has_run(cell_key))
        ]
        bar_options = {
            "total": len(plan.cells),
            "initial": len(plan.cells) - len(cells_left),
            "unit": "cell",
            "disable": None,
        }
        with need("tqdm.auto", "progress bars").tqdm(**bar_options) if progress else contextlib.nullcontext() as bar:
            try:
                _run(plan, cells_left, store, workers, keep_runs, bar)
            finally:
                forget()
        finished_sweep = Sweep.read(folder)
    for wrong_cell, problem in finished_sweep.wrong.items():
        warnings.warn(
            f"sweep: the books of {wrong_cell} do not add up, so its metrics are wrong: {problem}.", stacklevel=2
        )
    return finished_sweep.raise_if_failed() if strict else finished_sweep


def _run(plan: Plan, cells_left: list[str], store: Store, workers, keep_runs: bool, bar):
    """Compute and keep the cells that are left."""
    # When a worker is killed, those that were under way are tried again after all others; one that has seen several
    # deaths runs alone, so that a cell which takes its worker with it costs itself only.
    deaths: Counter[str] = Counter()
    with portable(plan) as pack:
        how = (workers, keep_runs, pack, bar)
        while cells_left:
            alone = deaths[cells_left[0]] >= DEATHS
            begun = []
            ended = set()
            try:
                _batch(plan, cells_left[:1] if alone else cells_left, store, how, begun, ended)
            except Exception as error:
                # Loky reports it by a broken pool; Dask after it has tried a cell on several workers, or when a scenario was
                # lost with the only worker that held it.
                dask = type(error).__name__ in ("KilledWorker", "FutureCancelledError")
                if not (dask or isinstance(error, BrokenProcessPool)):
                    raise
                if alone:
                    _keep(plan, store, Outcome(cells_left[0], error=KILLED, trace=repr(error)), bar)
                    ended.add(cells_left[0])
                deaths.update(cell_key for cell_key in begun if cell_key not in ended)
            cells_left = sorted((cell_key for cell_key in cells_left if cell_key not in ended), key=deaths.__getitem__)


def _batch(plan: Plan, keys: list[str], store: Store, how: tuple, begun: list[str], ended: set[str]):
    """Compute cells on the backend in force, and keep each as it comes; note those handed out, and those back."""
    joblib = need("joblib", "sweeps")
    workers, keep_runs, pack, bar = how
    parallel = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
    _mend_dask(parallel._backend)
    # Within this process nothing is pickled: a class that comes back from its pickle would take the place of itself.
    here = joblib.effective_n_jobs(workers) == 1 or getattr(parallel._backend, "supports_sharedmem", False)
    # This also imports, and compiles if need be, the engine here, rather than in all workers at the same time.
    code = code_of_package()
    packs = {}
    audited = {*list(plan.cells)[::EVERY]}

    def calls():
        for cell_key in keys:
            cell = plan.cells[cell_key]
            scenario = plan.scenarios[cell.scenario]
            cell_inputs = Given(cell.content, cell.labels["seed"], cell.policy, cell.estimator, plan.measure)
            if not here:
                if cell.scenario not in packs:
                    packs.clear()  # cells come scenario by scenario
                    packs[cell.scenario] = packed(pack(scenario))
                scenario = packs[cell.scenario]
                cell_inputs = pack(cell_inputs)
            begun.append(cell_key)
            yield joblib.delayed(work)(cell_key, cell_inputs, scenario, code, keep_runs, cell_key in audited)

    with contextlib.closing(parallel(calls())) as outcomes:
        for outcome in outcomes:
            _keep(plan, store, outcome, bar)
            ended.add(outcome.key)


def _keep(plan: Plan, store: Store, outcome: Outcome, bar):
    """Keep a cell's metrics or error, and move the bar."""
    if outcome.metrics is None:
        store.keep_error(outcome)
    else:
        store.keep(outcome, plan.cells[outcome.key].labels | outcome.labels)
    if bar is not None:
        bar.update()


def _mend_dask(backend):
    """Mend joblib's Dask backend, in place, if workers die."""
    # It does not report that Dask gave a cell up, and would wait without end; while there is one worker (the others may be on
    # their way back) it computes in this process, which a cell that takes its worker with it would end; it waits for
    # workers by a task that may be lost with one; and it would wait without end for a cell with its scenario in transfer to one:
    # here such a scenario travels with its cell.
    if type(backend).__name__ != "DaskDistributedBackend" or hasattr(backend, "_mended"):
        return
    submit = backend.submit
    scatter = backend._to_func_args
    backend._mended = True

    def submit_and_answer(func, callback=None):
        future = submit(func, callback)
        future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
        return future

    async def arguments(func):
        try:
            return await scatter(func)
        except OSError:  # the connection closed
            return need("joblib._dask", "sweeps").Batch(func.items), func.items

    def cores(n_jobs=None):
        try:
            backend.client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError:
            raise RunError(
                f"sweep: found no Dask worker in {WAIT} s; expected one or more. The cells that are finished are kept; "
                "start workers, and the same call resumes from there."
            ) from None
        return max(2, sum(backend.client.ncores().values()))

    backend.submit = submit_and_answer
    backend._to_func_args = arguments
    backend.effective_n_jobs = cores
