"""Settings of a site that its files can say: values of Slurm's knobs, and amounts of limits."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gpuschedlab.papers.clusters.explains.sweep import DAY
from gpuschedlab.papers.clusters.files.description import INF, Limit
from gpuschedlab.papers.clusters.files.slurm_lines import unsayable
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm

POINTS = (0.0, 100.0, 1_000.0, 10_000.0, 100_000.0)
HOUR = 3_600.0
LADDERS: dict[str, tuple] = {
    "weight_age": POINTS,
    "weight_fairshare": POINTS,
    "weight_size": POINTS,
    "weight_partition": POINTS,
    "weight_qos": POINTS,
    "max_age": (HOUR, 6 * HOUR, DAY, 7 * DAY, 14 * DAY),
    "half_life": (HOUR, DAY, 7 * DAY, 30 * DAY),
    "small": (False, True),
    "depth": (1.0, 4.0, 8.0, 16.0, 50.0, INF),
    "plan.every": (10.0, 30.0, 60.0, 300.0),
    "plan.tested": (50, 100, 500, 2_000),
    "plan.window": (DAY, 2 * DAY, 7 * DAY),
}
"""Values that are tried of each knob of Slurm's rule; those that slurm.conf cannot say beside the site's others are left out."""
NO_WEIGHTS = dict.fromkeys((name for name in LADDERS if name.startswith("weight_")), 0.0)
CONSTANTS: dict[str, dict[str, object]] = {
    "by submission": NO_WEIGHTS,
    "smallest first": NO_WEIGHTS | {"weight_size": 100_000.0, "small": True},
    "fair share alone": NO_WEIGHTS | {"weight_fairshare": 100_000.0},
    "without backfill": {"backfill": "none"},
}
"""Settings that need no search: values in the place of the site's, by name."""
TIMES = (0.5, 1.5, 2.0, INF)
"""Of a limit's amount; inf takes it away."""


@dataclass(frozen=True)
class Setting:
    """Slurm's rule and limits of a site."""

    rule: Slurm
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Axis:
    """One knob, or one amount of a limit: its name, and the setting with each value that is tried."""

    name: str
    values: Callable[[Setting], list[Setting]] = field(repr=False)


def own_setting(site: Site) -> Setting:
    """Return the `Setting` that a site's files say."""
    return Setting(replace(site.slurm, limits=()), site.description.limits)


def axes_of(site: Site) -> list[Axis]:
    """Return a list of `Axis`: knobs and amounts of limits of a site that can change anything on it."""
    own_rule = own_setting(site).rule
    knob_names = [*LADDERS]
    has = site.log.trace.columns
    if "user" not in has or not own_rule.weight_fairshare:
        knob_names = [knob_name for knob_name in knob_names if knob_name not in ("half_life",)]
    if "user" not in has:
        knob_names.remove("weight_fairshare")
    if len({factor for _, factor in own_rule.partitions}) < 2:
        knob_names.remove("weight_partition")
    if len({factor for _, factor in own_rule.qos}) < 2:
        knob_names.remove("weight_qos")
    axes = [Axis(knob_name, _ladder(own_rule, knob_name)) for knob_name in knob_names]
    for limit_place, limit in enumerate(site.description.limits):
        axes += [
            Axis(f"{amount_name} of {limit}", _amounts(limit_place, amount_name, amount))
            for amount_name, amount in limit.amounts.items()
        ]
    return axes


def _ladder(own_rule: Slurm, name: str) -> Callable[[Setting], list[Setting]]:
    """Return a function of a setting that lists it with each value of a knob that slurm.conf can say."""

    def values(setting: Setting) -> list[Setting]:
        rules = [_with(setting.rule, name, value) for value in (*LADDERS[name], _value(own_rule, name))]
        return [replace(setting, rule=rule) for rule in dict.fromkeys(rules) if not unsayable(own_rule, rule)]

    return values


def _with(rule: Slurm, name: str, value) -> Slurm:
    """Return the `Slurm` rule with another value of a knob, or of its plan."""
    if name.startswith("plan."):
        knob = name.removeprefix("plan.")
        return replace(rule, plan=replace(rule.plan, **{knob: value}))
    return replace(rule, **{name: value})


def _value(rule: Slurm, name: str):
    """Return the value of a knob of a rule, or of its plan, of the knob's own type."""
    if name.startswith("plan."):
        return getattr(rule.plan, name.removeprefix("plan."))
    return getattr(rule, name)


def _amounts(limit_place: int, amount_name: str, own_amount: float) -> Callable[[Setting], list[Setting]]:
    """Return a function of a setting that lists it with each amount of one limit: multiples of the site's own, and that itself."""
    tried = [own_amount]
    for times in TIMES:
        if times == INF:
            tried.append(INF)
        else:
            tried.append(max(1.0, round(own_amount * times)))

    def values(setting: Setting) -> list[Setting]:
        limit = setting.limits[limit_place]
        limits = [
            (*setting.limits[:limit_place], replace(limit, **{amount_name: a}), *setting.limits[limit_place + 1 :])
            for a in tried
        ]
        return [replace(setting, limits=tried_limits) for tried_limits in dict.fromkeys(limits)]

    return values


def distance(setting: Setting, own: Setting) -> int:
    """Return the number of knobs and amounts of limits that differ."""
    knobs = sum(_value(setting.rule, knob_name) != _value(own.rule, knob_name) for knob_name in LADDERS)
    return knobs + sum(limit != own_limit for limit, own_limit in zip(setting.limits, own.limits, strict=True))
