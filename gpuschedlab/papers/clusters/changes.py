"""What an explorer changes of a site, by its rule: nodes, what is known of run times, weights or quotas."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from gpuschedlab.errors import LabError, TraceError
from gpuschedlab.knobs import Holds, Knob, Knobbed, knob_word
from gpuschedlab.papers.clusters.files.description import INF, Limit, seconds
from gpuschedlab.papers.clusters.files.slurm_files import number
from gpuschedlab.papers.clusters.queues import Queue
from gpuschedlab.papers.clusters.queues.kueue import Kueue
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.papers.clusters.schedulers.limits import AMOUNTS
from gpuschedlab.papers.clusters.schedulers.slurm import Slurm
from gpuschedlab.parse import estimator_of, policy_of, split_word, with_words
from gpuschedlab.policies.simple import Fifo
from gpuschedlab.sim import Policy
from gpuschedlab.traces.logs.options import nearest


@dataclass(frozen=True)
class SiteChange(Knobbed):
    """What is changed of a site: nodes, its rule, and what is known of run times."""

    more: Annotated[int, Knob(0, 8, unit="nodes", help="nodes beyond the site's own, like its first")] = 0
    rule: Annotated[Fifo, Holds(("backfill", "depth"))] = Fifo()
    known: Annotated[bool, Knob(help="whether run times are known exactly, or as requested")] = False

    @property
    def played(self) -> Policy:
        """The rule as it is played, a `Policy`."""
        return self.rule


@dataclass(frozen=True)
class PriorityChange(SiteChange):
    """What is changed of a site that weighs priorities."""

    rule: Annotated[Slurm, Holds(("backfill", "depth", "weight_age", "weight_fairshare", "weight_size"))] = Slurm()


@dataclass(frozen=True)
class QuotaChange(SiteChange):
    """What is changed of a site with queues: GPUs of their own that go from the last to the first, too."""

    rule: Annotated[Kueue, Holds(("fair", "resume"))] = Kueue()
    moved: Annotated[
        int, Knob(-64, 64, unit="GPUs", help="of the last queue's quota, as far as it has them, that the first gets")
    ] = 0

    @property
    def played(self) -> Kueue:
        """The rule with these quotas, a `Kueue`."""
        if len(self.rule.queues) < 2:
            return self.rule
        first_queue, *middle_queues, last_queue = self.rule.queues
        gpu_type, nominal_gpus = first_queue.nominal[0]
        moved_gpus = (
            min(dict(last_queue.nominal).get(gpu_type, 0.0), self.moved)
            if self.moved > 0
            else max(-nominal_gpus, self.moved)
        )
        return replace(
            self.rule,
            queues=(
                _with_quota(first_queue, gpu_type, moved_gpus),
                *middle_queues,
                _with_quota(last_queue, gpu_type, -moved_gpus),
            ),
        )


def _with_quota(queue: Queue, kind: str, more: float) -> Queue:
    """Return a `Queue` with so many GPUs of a type more of its own."""
    nominal = dict(queue.nominal)
    if kind in nominal:
        nominal[kind] += more
    return replace(queue, nominal=tuple(nominal.items()))


CHANGES = ("more", "cluster", "policy", "estimator", "delays", "limits", "within")
"""Changes of a site beside its limits, quotas and the knobs of its rule."""
PARTITIONS = {"tier": "tiers", "factor": "partitions"}
"""Words of partitions (tier.NAME, factor.NAME), and the fields of Slurm's rule that have them."""
PLAN = "plan"
"""Word of knobs of the plan of Slurm's rule (plan.every)."""
QUOTAS = {"quota": "nominal", "borrow": "borrow", "lend": "lend"}
"""Words of quotas of queues."""
RULES = {Fifo: SiteChange, Slurm: PriorityChange, Kueue: QuotaChange}
"""What is changed of a site, by its rule."""


def changes_of(site: Site, changes: Mapping[str, object]) -> dict[str, object]:
    """Return a dict of a site's changes by the names in `CHANGES`, read from values or from the words of a command line.

    Changes that are read already stay as they are.

    Knobs of the site's own rule and quotas become a `policy`, and limits (limit.user, ...) become `within`.

    Raises
    ------
    TraceError
        A change is not known, or its value is wrong.
    """
    site_changes = dict(changes)
    if "more" in site_changes:
        site_changes["more"] = with_words(site, {"more": word(site_changes["more"])}).more
    if isinstance(site_changes.get("limits"), str):
        site_changes["limits"] = seconds(site_changes["limits"], "limits", unit=1.0)
    if isinstance(site_changes.get("estimator"), str):
        site_changes["estimator"] = estimator_of(site_changes["estimator"])
    limit_words = {
        change_name: word(site_changes.pop(change_name))
        for change_name in [*site_changes]
        if change_name.startswith("limit.")
    }
    if limit_words:
        site_changes["within"] = limits_in(site_changes.get("within", site.description.limits), limit_words)
    rule_words = {
        change_name: word(site_changes.pop(change_name))
        for change_name in [*site_changes]
        if change_name not in CHANGES
    }
    if "policy" in site_changes or rule_words:
        site_changes["policy"] = ruled(site, _policy_of(site, site_changes.get("policy", site.rule)), rule_words)
    return site_changes


def word(value: object) -> str:
    """Word of a command line for a value of a knob or a limit."""
    return value if isinstance(value, str) else knob_word(value)


def _policy_of(site: Site, policy: Policy | str) -> Policy:
    """Policy by its name among those of the site, or by its word."""
    if not isinstance(policy, str):
        return policy
    if policy in site.policies:
        return site.policies[policy]
    try:
        return ruled_by(site, policy)
    except LabError as error:
        expected = f"a Policy, or one of {', '.join(site.policies)}, or a policy's word"
        raise TraceError(f"whatif: found the policy {policy!r}; expected {expected}: {error}") from error


def limits_in(limits: tuple[Limit, ...], words: Mapping[str, str]) -> tuple[Limit, ...]:
    """Return a tuple of `Limit`: these, with others by words: limit.user[.QOS], limit.qos.NAME, limit.account.NAME, limit.array.

    They are of GPUs; limit.user.jobs is of jobs, limit.user.gpus:a100 of GPUs of a type, limit.qos.NAME.wall and .size of what a job
    may ask for.
    """
    for limit_key, limit_word in words.items():
        _, owner_kind, *owner_name = limit_key.split(".")
        amount_name = "gpus"
        gpu_type = ""
        if owner_name and owner_name[-1].partition(":")[0] in AMOUNTS:
            amount_name, _, gpu_type = owner_name.pop().partition(":")
        name = (".".join(owner_name),) if owner_name else ()
        field = "qos" if owner_kind == "user" else "names"
        if any(
            (owner_kind, site_limit.of, site_limit.names[:1]) == ("account", "accounts", name) for site_limit in limits
        ):
            owner_kind = "accounts"  # with those below it
        try:
            new_limit = Limit(
                owner_kind,
                gpu_type=gpu_type,
                **{field: name, amount_name: _most(amount_name, limit_word, f"whatif {limit_key}")},
            )
        except TraceError as error:
            raise TraceError(
                f"whatif {limit_key}: {error}, such as limit.user.{name[0] if name else 'QOS'}=8."
            ) from error
        limits = _replaced(limits, new_limit, amount_name)
    return limits


def _most(what: str, value: str, where: str) -> float:
    """Amount of a limit; inf if it is taken away."""
    if value.upper() in ("UNLIMITED", "INF"):
        return INF
    return seconds(value, where) if what == "wall" else number(value, where)


def _replaced(limits: tuple[Limit, ...], new_limit: Limit, amount_name: str) -> tuple[Limit, ...]:
    """Return a tuple of each `Limit`, with another in the place of those of its owners.

    If these stand among others, the old one stays for the others.
    """
    site_limits: list[Limit] = []
    for limit in limits:
        together = new_limit.of == "accounts"
        limit_names = new_limit.names
        if together and limit.names[:1] == new_limit.names:
            limit_names = limit.names
        shared = {*limit_names} & {*limit.names}
        apart = limit_names != limit.names and (together or not shared)
        if (limit.of, limit.qos, limit.gpu_type) != (new_limit.of, new_limit.qos, new_limit.gpu_type) or apart:
            site_limits.append(limit)
            continue
        unchanged = tuple(owner_name for owner_name in limit.names if owner_name not in limit_names)
        whose = {limit_field: getattr(limit, limit_field) for limit_field in ("partitions", "exempt", "exempt_in")}
        new_limit = replace(new_limit, names=limit_names, **whose)
        if unchanged:
            site_limits.append(replace(limit, names=unchanged))
        site_limits.append(replace(limit, names=limit_names, **{amount_name: INF}))
    if getattr(new_limit, amount_name) < INF:
        site_limits.append(new_limit)
    return tuple(site_limits)


def ruled_by(site: Site, word: str) -> Policy:
    """Return the `Policy` of a word; Slurm and Kueue keep the weights, shares and quotas that the site has."""
    rule_name, knob_words, _ = split_word(word)
    site_rules = {"slurm": site.slurm} if site.description.scheduler.weights.counts else {}
    site_rules |= {"kueue": site.own} if isinstance(site.own, Kueue) else {}
    return with_words(site_rules[rule_name], knob_words, rule_name) if rule_name in site_rules else policy_of(word)


def ruled(site: Site, rule: Policy, words: Mapping[str, str]) -> Policy:
    """Return a `Policy`: a rule with knobs and quotas of queues that words change.

    The words are depth, weight_age, quota.QUEUE[.TYPE] (GPUs; also borrow, lend), and others like them.

    Of Slurm's rule also tier.PARTITION, factor.PARTITION, and knobs of its plan: plan.every, plan.window, plan.tested, ...
    """
    quotas = {key: value for key, value in words.items() if key.partition(".")[0] in QUOTAS}
    dotted = {key: value for key, value in words.items() if key.partition(".")[0] in (*PARTITIONS, PLAN)}
    knobs = {key: value for key, value in words.items() if key not in quotas and key not in dotted}
    if dotted or (not knobs.keys() <= rule.knobs.keys() and knobs.keys() <= site.slurm.knobs.keys()):
        rule = site.slurm  # weights of a site that has none
    if "depth" in knobs and "backfill" not in knobs and isinstance(rule, Fifo):
        knobs["backfill"] = "plan"
    if unknown := next((key for key in knobs if key not in rule.knobs), None):
        expected = [*CHANGES, *rule.knobs, *(f"quota.{queue.name}" for queue in getattr(rule, "queues", ()))]
        raise TraceError(
            f"whatif: found the change {unknown!r}; expected one of {', '.join(expected)}.{nearest(unknown, expected)}"
        )
    for key, value in quotas.items():
        quota, _, owner = key.partition(".")
        name, _, kind = owner.partition(".")
        rule = _with_word(rule, quota, name, kind, value)
    for key, value in dotted.items():
        rule = _with_dotted(rule, key, value)
    return with_words(rule, knobs)


def _with_dotted(rule: Slurm, key: str, value: str) -> Slurm:
    """Slurm's rule with another tier or factor of a partition, or another knob of its plan."""
    kind, _, partition = key.partition(".")
    if kind == PLAN:
        return replace(rule, plan=with_words(rule.plan, {partition: value}))
    pairs = dict(getattr(rule, PARTITIONS[kind]))
    if partition not in pairs:
        raise TraceError(f"whatif: found {key}; expected a partition of the site: {', '.join(pairs) or 'it has none'}.")
    pairs[partition] = number(value, f"whatif {key}")
    return replace(rule, **{PARTITIONS[kind]: tuple(pairs.items())})


def _with_word(rule: Policy, quota: str, name: str, kind: str, value: str) -> Policy:
    """Return the `Policy` with another quota of a queue, of all types that it has or of one."""
    queues = getattr(rule, "queues", ())
    queue_names = [queue.name for queue in queues]
    if name not in queue_names:
        raise TraceError(
            f"whatif: found {quota}.{name}; expected a queue of the site: {', '.join(queue_names) or 'it has none'}."
        )
    queue = queues[queue_names.index(name)]
    field = QUOTAS[quota]
    kinds = [kind] if kind else [gpu_type for gpu_type, _ in queue.nominal]
    queue_quotas = dict(getattr(queue, field)) | {
        gpu_type: number(value, f"whatif {quota}.{name}") for gpu_type in kinds
    }
    changed = replace(queue, **{field: tuple(queue_quotas.items())})
    return replace(rule, queues=tuple(changed if queue_of_rule is queue else queue_of_rule for queue_of_rule in queues))
