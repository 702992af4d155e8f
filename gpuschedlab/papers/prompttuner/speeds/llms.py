"""LLMs whose prompts are tuned: seconds of an iteration, of a start, and of a search of the prompt bank."""

from types import MappingProxyType

import polars as pl

from gpuschedlab.speeds.delays import Delays
from gpuschedlab.speeds.table import Speeds

LLMS = ("gpt2-base", "gpt2-large", "vicuna-7b")
"""GPT2-Base, GPT2-Large and Vicuna-7B (section 4.6.1)."""

ITERATION = MappingProxyType({"gpt2-base": 0.1, "gpt2-large": 0.25, "vicuna-7b": 0.5})
"""Seconds per iteration on one GPU: a stand-in, which only sets the unit of ITA; the thesis has no such number."""

WARM_UP = MappingProxyType({"gpt2-base": 20.0, "gpt2-large": 30.0, "vicuna-7b": 50.0})
"""T_cold (s): a stand-in between "tens of seconds" (4.3.2) and "nearly one minute" (4.1)."""

BANK = MappingProxyType({"gpt2-base": 5.3, "gpt2-large": 6.1, "vicuna-7b": 9.2})
"""Seconds of a search of the prompt bank with 50 clusters (4.6.3.5)."""

EVALUATION = MappingProxyType({llm: seconds / (50 + 3000 / 50) for llm, seconds in BANK.items()})
"""Seconds in which a prompt is scored: a search scores 50 medoids and, of 3,000 prompts (4.4.3.3), 60 of a cluster."""

CONNECT = 2.0
"""Seconds in which the GPUs of a job connect, at most (4.5.1)."""

COMMUNICATION = 0.005
"""Share of the time of a job on several GPUs (4.2.2: 0.4 to 0.5 %)."""

GPU_TYPE = "a100-80gb"
"""The one type of GPU (4.6.1)."""

PRICE = 5.12
"""Dollars per GPU-hour: an eighth of a p4de.24xlarge on demand, 40.97 dollars. The thesis states no price, and adds a storage
cost, which is left out."""


def prompt_speeds(most: int = 8, communication: float = COMMUNICATION) -> Speeds:
    """Return the `Speeds` of each LLM, in iterations a second.

    a GPUs, up to `most`, are (1 - communication) a times as fast as one, on any nodes (4.2.2).
    """
    speed_rows = []
    for llm, seconds in ITERATION.items():
        for gpus in range(1, most + 1):
            efficiency = 1.0
            if gpus > 1:
                efficiency = 1 - communication
            speed_rows.append((llm, GPU_TYPE, gpus, gpus * efficiency / seconds))
    return Speeds.from_frame(pl.DataFrame(speed_rows, schema=["model", "gpu_type", "n_gpus", "rate"], orient="row"))


def prompt_delays(warm_up: float = 1.0, connect: float = CONNECT) -> Delays:
    """Return the `Delays` before progress at a warm or cold start of a job, without and with a search of the prompt bank.

    `warm_up` is over `WARM_UP`; the GPUs connect in `connect` seconds.

    Examples
    --------
    >>> prompt_delays().seconds("cold bank", ["vicuna-7b"]).round(1).tolist()
    [61.2]
    """
    warm = dict.fromkeys(LLMS, connect + 0.0)
    cold = {llm: connect + warm_up * WARM_UP[llm] for llm in LLMS}
    kinds = {}
    for kind, seconds in (("warm", warm), ("cold", cold)):
        kinds[kind] = seconds
        kinds[f"{kind} bank"] = {llm: seconds[llm] + BANK[llm] for llm in LLMS}
    return Delays(kinds=kinds)


def search_as_work(warm_up: float = 1.0, connect: float = CONNECT) -> Delays:
    """Return `Delays` as of `prompt_delays`, if the scores of a search are part of each job's work.

    Kinds of start with and without a search are equal.
    """
    kinds = dict(prompt_delays(warm_up, connect).kinds)
    return Delays(kinds={kind + bank: dict(kinds[kind]) for kind in ("warm", "cold") for bank in ("", " bank")})
