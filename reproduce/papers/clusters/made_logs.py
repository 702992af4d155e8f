"""Independent small cluster: node-level EASY with limit rows, windows, dependencies, tiers, partitions, fair share, launch delays."""

from pathlib import Path

import numpy as np
import polars as pl
from numba import njit

from gpuschedlab.cluster import Cluster
from gpuschedlab.estimators.requested import Requested
from gpuschedlab.papers.clusters.recipe import Site
from gpuschedlab.policies import Fifo
from gpuschedlab.sim import Scenario
from gpuschedlab.sim.ordered import Plan

EASY = 0
GREEDY = 1
SHORTEST = 2
"""Rules of `simulate`: EASY backfill in order of submission; greedy backfill; EASY in order of requested time."""


@njit(cache=True)
def place(free, g, per, mask, out):
    n = len(free)
    if g <= per:
        b = -1
        for i in range(n):
            if mask[i] and free[i] >= g and (b < 0 or free[i] < free[b]):
                b = i
        if b < 0:
            return 0
        out[0] = b
        return 1
    k = (g + per - 1) // per
    c = 0
    for i in range(n):
        if mask[i] and free[i] == per:
            out[c] = i
            c += 1
            if c == k:
                return k
    return 0


@njit(cache=True)
def put(free, nodes, k, g, per, s):
    left = g
    for x in range(k):
        a = min(per, left)
        free[nodes[x]] -= s * a
        left -= a


@njit(cache=True)
def shadow(free, re, rj, nr, nodes, kn, gp, g, per, mask, t, buf):
    f = free.copy()
    if place(f, g, per, mask, buf):
        return t
    o = np.argsort(re[:nr])
    for x in o:
        j = rj[x]
        put(f, nodes[j], kn[j], gp[j], per, -1)
        if place(f, g, per, mask, buf):
            return max(t, re[x])
    return 1e18


# Loops below stand for assignments to slices: numba compiles for each of those the words of an error as well, for seconds.


@njit(cache=True)
def sort_first(jobs, count, keys):
    """Sort the first jobs of an array by their keys."""
    order = np.argsort(keys)
    sorted_jobs = np.empty(count, np.int64)
    for i in range(count):
        sorted_jobs[i] = jobs[order[i]]
    for i in range(count):
        jobs[i] = sorted_jobs[i]


@njit(cache=True)
def simulate(
    sub,
    begin,
    dep,
    gp,
    dur,
    req,
    delay,
    user,
    part,
    masks,
    N,
    per,
    mem,
    unit,
    val,
    tier,
    maint,
    cls,
    hours,
    fair,
    every=0.0,
    rule=EASY,
):
    n = len(sub)
    K = mem.shape[0]
    P = masks.shape[0]
    start = np.full(n, np.nan)
    end = np.full(n, np.inf)
    elig = np.full(n, np.inf)
    nodes = np.zeros((n, 4), np.int64)
    kn = np.zeros(n, np.int64)
    free = np.full(N, per)
    buf = np.empty(64, np.int64)
    use = np.zeros((K, val.shape[1]), np.int64)
    child = np.full(n, -1)
    nxtc = np.full(n, -1)
    for j in range(n):
        if dep[j] >= 0:
            nxtc[j] = child[dep[j]]
            child[dep[j]] = j
        else:
            elig[j] = max(sub[j], begin[j])
    eo = np.argsort(elig)
    ai = 0
    n0 = 0
    for j in range(n):
        if dep[j] < 0:
            n0 += 1
    pend = np.empty(n, np.int64)
    npd = 0  # released dependents not yet submitted
    q = np.empty(n, np.int64)
    nq = 0
    rj = np.empty(n, np.int64)
    re = np.empty(n)
    ra = np.empty(n)
    nr = 0
    nu = user.max() + 1
    usage = np.zeros(nu)
    held = np.zeros(nu)
    lastu = 0.0
    t = 0.0
    fail = np.zeros((P, 65), np.bool_)
    head = np.empty(P, np.int64)
    sh = np.empty(P)
    heldby = np.zeros(n, np.bool_)
    lastf = 0.0
    pri = np.zeros(nu)
    while True:
        nx = np.inf
        if ai < n0:
            nx = elig[eo[ai]]
        for i in range(npd):
            if elig[pend[i]] < nx:
                nx = elig[pend[i]]
        for i in range(nr):
            if ra[i] < nx:
                nx = ra[i]
        if nq > 0:
            for w in range(maint.shape[0]):
                if maint[w, 1] > t and maint[w, 1] < nx:
                    nx = maint[w, 1]
            if hours[0] >= 0:
                o = np.floor(t / 86400) * 86400 + hours[0] * 3600
                if o <= t:
                    o += 86400
                if o < nx:
                    nx = o
        if nx == np.inf:
            break
        if fair:
            d = 2.0 ** (-(nx - lastu) / 604800.0)
            for u in range(nu):
                usage[u] = usage[u] * d + held[u] * 604800.0 / np.log(2) * (1 - d)
            lastu = nx
        t = nx if every == 0 else np.ceil(nx / every) * every
        i = 0
        while i < nr:
            if ra[i] <= t + 1e-9:
                j = rj[i]
                put(free, nodes[j], kn[j], gp[j], per, -1)
                held[user[j]] -= gp[j]
                for k in range(K):
                    if mem[k, j] >= 0:
                        use[k, mem[k, j]] -= gp[j] if unit[k] == 0 else 1
                c = child[j]
                while c >= 0:
                    elig[c] = max(max(sub[c], begin[c]), t)
                    pend[npd] = c
                    npd += 1
                    c = nxtc[c]
                nr -= 1
                rj[i] = rj[nr]
                re[i] = re[nr]
                ra[i] = ra[nr]
            else:
                i += 1
        while True:
            j = -1
            if ai < n0 and elig[eo[ai]] <= t + 1e-9:
                j = eo[ai]
                ai += 1
            else:
                for i in range(npd):
                    if elig[pend[i]] <= t + 1e-9:
                        j = pend[i]
                        npd -= 1
                        pend[i] = pend[npd]
                        break
            if j < 0:
                break
            x = nq
            while x > 0 and (
                tier[q[x - 1]] < tier[j]
                or (
                    tier[q[x - 1]] == tier[j]
                    and (elig[q[x - 1]] > elig[j] or (elig[q[x - 1]] == elig[j] and q[x - 1] > j))
                )
            ):
                q[x] = q[x - 1]
                x -= 1
            q[x] = j
            nq += 1
        if nq == 0:
            continue
        if fair:
            if t - lastf >= 300:
                lastf = t
                for u in range(nu):
                    pri[u] = np.floor(np.log2(usage[u] + 3600.0) * 4)
            kk = np.empty(nq)
            for i in range(nq):
                kk[i] = pri[user[q[i]]] * 1e9 + elig[q[i]] + 1e-6 * q[i]
            sort_first(q, nq, kk)
        if rule == SHORTEST:
            kk = np.empty(nq)
            for i in range(nq):
                kk[i] = req[q[i]] - 1e9 * tier[q[i]] + 1e-7 * elig[q[i]]
            sort_first(q, nq, kk)
        for p in range(P):
            for g in range(65):
                fail[p, g] = False
            head[p] = -1
            sh[p] = 0.0
        w = 0
        h = (t % 86400) / 3600
        for i in range(nq):
            j = q[i]
            ok = True
            g = gp[j]
            p = part[j]
            for k in range(K):
                m = mem[k, j]
                if m >= 0 and use[k, m] + (g if unit[k] == 0 else 1) > val[k, m]:
                    ok = False
                    break
            if ok:
                for x in range(maint.shape[0]):
                    if t < maint[x, 1] and t + req[j] > maint[x, 0]:
                        ok = False
            if (
                ok
                and cls[j]
                and not (h >= hours[0] and h < hours[1] if hours[0] < hours[1] else (h >= hours[0] or h < hours[1]))
            ):
                ok = False
            if not ok and head[p] < 0 and not heldby[j] and place(free, g, per, masks[p], buf):
                heldby[j] = True
            if ok and fail[p, g] and head[p] >= 0:
                ok = False
            if not ok:
                q[w] = j
                w += 1
                continue
            c = place(free, g, per, masks[p], buf)
            go = c > 0
            if c == 0:
                fail[p, g] = True
                if head[p] < 0 and rule != GREEDY:
                    head[p] = j
                    sh[p] = shadow(free, re, rj, nr, nodes, kn, gp, g, per, masks[p], t, np.empty(64, np.int64))
            else:
                for x in range(c):
                    nodes[j, x] = buf[x]
                kn[j] = c
                for hp in range(P):
                    if head[hp] >= 0 and t + req[j] > sh[hp]:
                        put(free, buf, c, g, per, 1)
                        rj[nr] = j
                        re[nr] = t + req[j]
                        s2 = shadow(
                            free, re, rj, nr + 1, nodes, kn, gp, gp[head[hp]], per, masks[hp], t, np.empty(64, np.int64)
                        )
                        put(free, buf, c, g, per, -1)
                        if s2 > sh[hp] + 1e-9:
                            go = False
                            break
            if not go:
                q[w] = j
                w += 1
                continue
            put(free, nodes[j], kn[j], g, per, 1)
            start[j] = t + delay[j]
            end[j] = start[j] + min(dur[j], req[j])
            held[user[j]] += g
            rj[nr] = j
            re[nr] = t + req[j]
            ra[nr] = end[j]
            nr += 1
            for k in range(K):
                if mem[k, j] >= 0:
                    use[k, mem[k, j]] += g if unit[k] == 0 else 1
        nq = w
    return start, end, elig, nodes, kn, heldby


KINDS = [
    "plain",
    "userlim",
    "qoslim",
    "qospu",
    "acctlim",
    "maxjobs",
    "maint",
    "night",
    "deps",
    "depsE",
    "array",
    "tier",
    "parts",
    "fair",
]


def make(kind, seed, N=25, per=8, weeks=None):
    """A workload and its planted mechanism: a dict of arrays and `truth`."""
    r = np.random.default_rng([seed, KINDS.index(kind)])
    load = r.uniform(0.70, 0.95)
    drawn = int(r.integers(4, 13))
    weeks = weeks or drawn
    G = N * per
    n = int(load * G * weeks * 168 / 9.6)
    sizes = np.array([1, 2, 4, 8, 16, 32])
    H = weeks * 168
    x = r.uniform(0, H * 3600, 3 * n)
    h = (x / 3600) % 24
    x = x[r.uniform(size=3 * n) < (0.4 + 0.6 * ((h > 8) & (h < 20)))][:n]
    sub = np.sort(np.floor(x))
    n = len(sub)
    gp = r.choice(sizes, n, p=[0.55, 0.1, 0.1, 0.17, 0.05, 0.03])
    dur = np.minimum(np.exp(r.normal(np.log(1800), 1.8, n)), 48 * 3600).round() + 1
    steps = np.array([0.5, 1, 2, 4, 8, 12, 24, 48, 72]) * 3600
    req = steps[np.minimum(np.searchsorted(steps, dur * r.uniform(1.1, 4, n)), 8)]
    to = r.uniform(size=n) < 0.04
    dur = np.where(to, req, np.minimum(dur, req))
    w = 1 / np.arange(1, 31)
    user = r.choice(30, n, p=w / w.sum())
    d = {
        "sub": sub,
        "begin": sub.copy(),
        "dep": np.full(n, -1),
        "gp": gp,
        "dur": dur,
        "req": req,
        "delay": r.integers(1, 6, n).astype(float),
        "user": user,
        "acct": user % 5,
        "qos": r.choice(3, n, p=[0.6, 0.25, 0.15]),
        "part": np.zeros(n, np.int64),
        "array": np.full(n, -1),
        "tier": np.zeros(n, np.int64),
        "masks": np.ones((1, N), bool),
        "maint": np.zeros((0, 2)),
        "cls": np.zeros(n, bool),
        "hours": np.array([-1.0, -1.0]),
        "fair": kind == "fair",
        "N": N,
        "per": per,
        "weeks": weeks,
    }
    rows = []
    truth = {}

    def dem(k):
        return (gp * np.minimum(dur, req))[k].sum() / (H * 3600)

    f = r.uniform(1.15, 1.7)
    if kind == "userlim":
        v = int(max(33, dem(user == 0) * f))
        rows = [(user, 0, v)]
        truth = {"kind": "limit", "scope": "user", "value": v}
    if kind == "qoslim":
        v = int(max(33, dem(d["qos"] == 1) * f))
        rows = [(np.where(d["qos"] == 1, 0, -1), 0, v)]
        truth = {"kind": "limit", "scope": "qos", "owner": 1, "value": v}
    if kind == "qospu":
        v = int(max(33, dem((user == 0) & (d["qos"] == 0)) * f))
        rows = [(np.where(d["qos"] == 0, user, -1), 0, v)]
        truth = {"kind": "limit", "scope": "user@qos", "owner": 0, "value": v}
    if kind == "acctlim":
        a = int(r.integers(0, 5))
        v = int(max(33, dem(d["acct"] == a) * f))
        rows = [(np.where(d["acct"] == a, 0, -1), 0, v)]
        truth = {"kind": "limit", "scope": "acct", "owner": a, "value": v}
    if kind == "maxjobs":
        m = (np.minimum(dur, req))[user == 0].sum() / (H * 3600)
        v = int(max(3, np.ceil(m * f)))
        rows = [(user, 1, v)]
        truth = {"kind": "limit", "scope": "user", "unit": "jobs", "value": v}
    if kind == "maint":
        k = int(r.integers(2, 5))
        days = np.sort(r.choice(np.arange(4, weeks * 7 - 3), k, replace=False))
        a = days * 86400.0 + r.integers(12, 29, k) * 1800.0
        d["maint"] = np.stack([a, a + r.integers(8, 25, k) * 1800.0], 1)
        truth = {"kind": "maint", "windows": d["maint"]}
    if kind == "night":
        d["cls"] = d["qos"] == 2
        d["hours"] = np.array([float(r.integers(36, 45)) / 2, float(r.integers(8, 17)) / 2])
        truth = {"kind": "night", "owner": 2, "hours": d["hours"]}
    if kind in ("deps", "depsE"):
        last = {}
        pick = r.uniform(size=n) < 0.2
        for j in range(n):  # a chained job is submitted right after its predecessor
            u = user[j]
            if pick[j] and u in last:
                d["dep"][j] = last[u]
                sub[j] = sub[last[u]] + r.integers(1, 120)
            last[u] = j
        truth = {"kind": "dep", "share": 0.2}
    if kind == "array":
        j = 0
        a = 0
        thr = []
        pick = r.uniform(size=n) < 0.004
        for j in np.flatnonzero(pick):
            k = int(r.integers(15, 80))
            m = np.arange(j, min(n, j + k))
            if (d["array"][m] >= 0).any():
                continue
            s = np.flatnonzero((sub >= sub[j]) & (d["array"] < 0))[:k]
            if len(s) < 15:
                continue
            sub[s] = sub[j]
            user[s] = user[j]
            gp[s] = r.choice([1, 1, 2, 4])
            dur[s] = (np.exp(r.normal(np.log(2400), 0.6)) * r.lognormal(0, 0.25, len(s))).round() + 1
            req[s] = steps[np.searchsorted(steps, dur[s].max() * 1.2)]
            d["array"][s] = a
            a += 1
            thr.append(int(r.integers(2, 9)) if r.uniform() < 0.5 else 0)
        d["acct"] = user % 5
        rows = [(d["array"], 1, [t or 10**6 for t in thr])]
        truth = {"kind": "throttle", "values": thr}
    if kind == "tier":
        d["tier"] = (d["qos"] == 1).astype(np.int64)
        truth = {"kind": "tier", "owner": 1}
    if kind == "parts":
        c = int(r.integers(6, 12))
        mk = np.zeros((2, N), bool)
        mk[0, : N - c] = True
        mk[1, N - c - 3 :] = True
        d["masks"] = mk
        d["part"] = (r.uniform(size=n) < (c - 1) / N).astype(np.int64)
        truth = {"kind": "parts"}
    o = np.argsort(sub, kind="stable")
    if (np.diff(sub) < 0).any():
        inv = np.empty(n, int)
        inv[o] = np.arange(n)
        for k in ["sub", "dep", "gp", "dur", "req", "delay", "user", "acct", "qos", "part", "array", "tier", "cls"]:
            d[k] = d[k][o]
        d["dep"] = np.where(d["dep"] >= 0, inv[d["dep"]], -1)
        rows = [(m[o], u, v) for m, u, v in rows]
    d["begin"] = d["sub"].copy()
    W = max([1] + [int(m.max()) + 1 for m, _, _ in rows])
    K = len(rows)
    d["mem"] = np.stack([m for m, _, _ in rows]).astype(np.int64) if K else np.zeros((0, n), np.int64)
    d["unit"] = np.array([u for _, u, _ in rows], np.int64)
    d["val"] = (
        np.stack([np.broadcast_to(v, W) if np.ndim(v) == 0 else np.array(v) for _, _, v in rows]).astype(np.int64)
        if K
        else np.zeros((0, 1), np.int64)
    )
    d["truth"] = truth
    d["load"] = load
    return d


def sim(d, more=0, plain=False, noise=None, every=0.0, rule=EASY):
    n = len(d["sub"])
    N = d["N"] + more
    mk = np.concatenate([d["masks"], np.ones((len(d["masks"]), more), bool)], 1)
    de = d["delay"] if noise is None else np.random.default_rng(noise).integers(1, 6, n).astype(float)
    z = np.zeros((0, n), np.int64)
    if plain:
        a = (
            z,
            np.zeros(0, np.int64),
            np.zeros((0, 1), np.int64),
            np.zeros(n, np.int64),
            np.zeros((0, 2)),
            np.zeros(n, bool),
            np.array([-1.0, -1.0]),
            False,
        )
    else:
        a = (d["mem"], d["unit"], d["val"], d["tier"], d["maint"], d["cls"], d["hours"], d["fair"])
    return simulate(
        d["sub"],
        d["begin"],
        np.full(n, -1) if plain else d["dep"],
        d["gp"].astype(np.int64),
        d["dur"],
        d["req"],
        de,
        d["user"].astype(np.int64),
        d["part"],
        np.ones_like(mk) if plain == "noparts" else mk,
        N,
        d["per"],
        *a,
        every,
        rule,
    )


PLANTED = {
    "userlim": ("limit", "each user", "gpus"),
    "qoslim": ("limit", "qos q1", "gpus"),
    "qospu": ("limit", "each user of qos q0", "gpus"),
    "maxjobs": ("limit", "each user", "jobs"),
    "maint": ("window", "all nodes", ""),
    "night": ("hours", "qos q2", ""),
    "array": ("throttle", "arrays", ""),
    "tier": ("tier", "qos", ""),
}
"""Kind, owner and unit by which what is planted is found; of "acctlim" the owner is drawn."""
MISFITS = ("drained", "passes", "plan")
"""Logs without a mechanism: two nodes are never used, and no file tells it; jobs start each 30 s alone; Slurm's plan, as files say."""
PLAN = Plan(tested=500, window=86_400.0, every=30.0, resolution=60.0)
"""Slurm's own, by its documentation."""
EDGE = 1800.0
"""Seconds by which the edge of a window, or of hours, may be off."""


def two(seed, **size):
    """A log with GPUs a user and windows."""
    made = make("userlim", seed, **size)
    windows = make("maint", seed, **size | {"weeks": made["weeks"]})
    return made | {"maint": windows["maint"], "also": windows["truth"]}


def misfit(kind, seed, **size):
    """A log of `MISFITS`."""
    made = make("plain", seed, **size)
    plan = [
        "[scheduler]",
        'backfill = "plan"',
        *(f"{k} = {getattr(PLAN, k)}" for k in ("tested", "window", "every", "resolution")),
    ]
    return made | {"passes": {"every": 30.0}, "drained": {"idle": 2}, "plan": {"rest": "\n".join(plan) + "\n"}}[kind]


def planned(d, more=0):
    """As `sim`, by Slurm's plan: that of the laboratory, as there is no other."""
    n = len(d["sub"])
    ran = np.minimum(d["dur"], d["req"])
    jobs = {"job_id": [f"{j}" for j in range(n)], "submit": d["sub"], "gpus": d["gp"].astype(float)}
    trace = pl.DataFrame(jobs | {"duration": ran + d["delay"], "requested_time": d["req"]})
    cluster = Cluster.homogeneous(d["N"] + more, d["per"])
    run = Scenario(trace, cluster, estimator=Requested()).run(Fifo(backfill="plan", depth=np.inf, plan=PLAN))
    nodes = np.zeros((n, 4), np.int64)
    count = np.zeros(n, np.int64)
    for job, node in run.allocations.sort("job", "node").select("job", "node").iter_rows():
        nodes[job, count[job]] = node
        count[job] = count[job] + 1
    start = run.jobs["start"].to_numpy() + d["delay"]  # the GPUs are held while a job is launched
    return start, start + ran, d["sub"], nodes, count, np.zeros(n, bool)


def told(kind, d):
    """The limit that was planted, as lines of TOML; "": none."""
    truth = d["truth"]
    if truth.get("kind") != "limit" or kind == "bare":
        return ""
    scope = truth["scope"]
    owner = truth.get("owner")
    whose = {"qos": f'of = "qos"\nnames = ["q{owner}"]', "user@qos": 'of = "user"\nqos = ["q0"]', "user": 'of = "user"'}
    whose["acct"] = f'of = "account"\nnames = ["a{owner}"]'
    return f"[[limits]]\n{whose[scope]}\n{truth.get('unit', 'gpus')} = {truth['value']}\n"


def judged(kind, d, found):
    """Whether what was planted is found, whether its value is right, and what else is named."""
    if kind == "two":  # both
        halves = [judged("userlim", d, [f for f in found if f.kind != "window"])]
        halves += [judged("maint", d | {"truth": d["also"]}, [f for f in found if f.kind == "window"])]
        return *(all(half[i] for half in halves) for i in (0, 1)), halves[0][2] + halves[1][2]
    truth = d["truth"]
    hit = False
    exact = False
    others = []
    planted = ("limit", f"account a{truth['owner']}", "gpus") if kind == "acctlim" else PLANTED.get(kind)
    for f in found:
        unit = f.value[1] if f.kind == "limit" else ""
        if (f.kind, f.of, unit) != planted:
            others.append(str(f))
            continue
        hit = True
        if f.kind == "limit":
            exact = f.value[0] == truth["value"]
        elif f.kind == "window":
            near = len(f.value) == len(truth["windows"])
            exact = near and bool((np.abs(np.array(f.value) - truth["windows"]) <= EDGE).all())
        elif f.kind == "hours":
            edges = np.array([int(t[:2]) + int(t[3:]) / 60 for t in f.value.split("-")])
            apart = np.abs(edges - truth["hours"]) % 24
            exact = bool((np.minimum(apart, 24 - apart) <= EDGE / 3600).all())
        elif f.kind == "throttle":
            values = {f"9{a:05}": v for a, v in enumerate(truth["values"])}
            exact = all(values[a] == v for a, v in f.value.items())
        else:
            exact = max(f.value, key=f.value.get) == f"q{truth['owner']}"
    return hit, exact, others


def site_of(d, result, folder, lists=True, eligible=False):
    """Site of a made log as its files would tell it: EASY on its nodes, requests, owners, and where each job ran."""
    start, end, elig, nodes, kn, _ = result
    there = np.isfinite(start)
    jobs = np.flatnonzero(there)
    names = np.array([f"n{i}" for i in range(len(d["masks"][0]))])
    arrays = [f"9{a:05}_{j}" if a >= 0 else f"{j}" for j, a in zip(jobs, d["array"][there], strict=True)]
    columns = {
        "job_id": arrays,
        "submit": d["sub"][there],
        "gpus": d["gp"][there].astype(float),
        "duration": np.maximum((end - start)[there], 1.0),
        "requested_time": d["req"][there],
        "user": [f"u{x:02}" for x in d["user"][there]],
        "account": [f"a{x}" for x in d["acct"][there]],
        "qos": [f"q{x}" for x in d["qos"][there]],
        "started": start[there],
    }
    columns |= {"eligible": elig[there]} if eligible else {}
    columns |= {"nodelist": [",".join(names[nodes[j, : kn[j]]]) for j in jobs]} if lists else {}
    groups = f"{d['N'] + d.get('idle', 0)}x{d['per']}"
    rest = d.get("rest", "")
    if len(d["masks"]) > 1:
        columns |= {"vc": [f"p{x}" for x in d["part"][there]]}
        rest = "".join(
            f"[partitions.p{p}]\nnodes = [{', '.join(repr(str(n)) for n in names[mask])}]\n"
            for p, mask in enumerate(d["masks"])
        )
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_parquet(path / "jobs.parquet")
    (path / "site.toml").write_text(f'[log]\npath = "jobs.parquet"\n[cluster]\nnodes = "{groups}"\n{rest}')
    return Site(str(path / "site.toml"))
