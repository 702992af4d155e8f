"""A plan by nodes in plain Python: its own event loop, every claim on every node in a list, every instant tried. Times in whole seconds."""

import math
from dataclasses import dataclass, field

INF = math.inf
PART = 100  # units of a GPU


@dataclass
class Job:
    """A job: s, GPUs in hundredths, the nodes that it asks for (0: any), the types that it may have (none: any)."""

    submit: float
    gpus: int
    duration: float
    estimate: float
    nodes: int = 0
    start: float = -1.0
    where: list = field(default_factory=list)  # (node, GPUs, cell)


@dataclass
class Claim:
    """GPUs of a node, and cells of the buddy rule, that are held or promised from an instant to an end."""

    node: int
    gpus: int
    begin: float
    end: float
    cell: int = 0


# --- placement: rooms and cells of the nodes of one type, {node: GPUs} and {node: bits}


def tightest(room, gpus):
    """Node with the least room that suffices."""
    return min(((r, n) for n, r in room.items() if r >= gpus), default=(0, None))[1]


def by_widest(room, gpus, unit):
    """So much at a time from the node with the most room; jobs of whole GPUs take whole ones."""
    room = dict(room)
    got = {}
    part = gpus < PART
    while gpus > 0:
        most, n = max(((r, -n) for n, r in room.items()), default=(0, 0))
        take = min(gpus, unit, most if part else most // PART * PART)
        if take <= 0 or (part and take < gpus):
            return None
        got[-n] = got.get(-n, 0) + take
        room[-n] -= take
        gpus -= take
    return got


def cell_of(bits, size, gpus):
    """Smallest free aligned block for so many whole GPUs: (its size, first GPU); None: there is none."""
    need = 1 << (gpus - 1).bit_length()
    found = []
    free = [not bits >> i & 1 for i in range(size)]
    for start in range(0, size - gpus + 1, need):
        if not all(free[start : min(start + need, size)]):
            continue
        block = need
        while block < size and all(free[start // (2 * block) * 2 * block :][: 2 * block]):
            block *= 2
        found.append((block, start))
    return min(found, default=None)


def by_buddy(bits, sizes, gpus):
    """Node with the smallest free cell that suffices."""
    found = [(cell_of(bits[n], sizes[n] // PART, gpus), n) for n in bits]
    return min(((c[0], n) for c, n in found if c), default=(0, None))[1]


def by_fewest(room, bits, sizes, gpus, buddy):
    """As few nodes as the empty cluster would need: largest empty ones, and one for what is left."""
    need = 0
    left = gpus
    for size in sorted(sizes.values(), reverse=True):
        if left > 0:
            need = need + 1
            left = left - size
    room = dict(room)
    got = {}
    for k in range(need):
        last = None
        if gpus <= max(sizes.values()):
            last = by_buddy({n: bits[n] for n in room}, sizes, -(-gpus // PART)) if buddy else tightest(room, gpus)
        if last is not None:
            return got | {last: gpus}
        empty = [(-sizes[n], n) for n in room if room[n] == sizes[n]]
        if k + 1 == need or not empty:
            return None
        n = min(empty)[1]
        got[n] = sizes[n]
        gpus -= sizes[n]
        del room[n]
    return None


def choose(rule, room, bits, sizes, gpus, nodes):
    """{node: GPUs} by a rule; None: no fit. "relax" is said as "consolidate" or "pack"."""
    if nodes:
        got = {}
        for _ in range(nodes):
            left = {n: r for n, r in room.items() if n not in got}
            if rule == "buddy":
                n = by_buddy({n: bits[n] for n in left}, sizes, -(-(gpus // nodes) // PART))
            else:
                n = tightest(left, gpus // nodes)
            if n is None:
                return None
            got[n] = gpus // nodes
        return got
    if rule in ("consolidate", "buddy"):
        return by_fewest(room, bits, sizes, gpus, rule == "buddy")
    if rule == "spread":
        return by_widest(room, gpus, PART)
    one = tightest(room, gpus) if rule == "pack" else None
    return {one: gpus} if one is not None else by_widest(room, gpus, gpus)


# --- the plan


class ByHand:
    """Starts of jobs, first come first served, under a plan by nodes."""

    def __init__(self, jobs, sizes, types, windows=(), rule="consolidate", depth=INF, patience=INF, plan=None):
        # sizes and types of the nodes, in order of type; windows: (node, start, end), known from the beginning
        self.jobs = jobs
        self.sizes = sizes
        self.types = types
        self.windows = windows
        self.rule = rule
        self.depth = depth
        self.patience = patience
        self.plan = {"tested": INF, "window": INF, "every": 0, "resolution": 0, "min_age": 0, "keep": False} | (
            plan or {}
        )
        self.promises = []
        self.now = 0.0

    def slot(self, time, up=True):
        """End of the slot in which an instant lies, or its beginning."""
        unit = self.plan["resolution"]
        return (math.ceil(time / unit - 1e-9) if up else math.floor(time / unit + 1e-9)) * unit if unit else time

    def down(self, n):
        """Until when a node is taken by windows under way; 0: it is up."""
        return max((end for node, start, end in self.windows if node == n and start <= self.now < end), default=0)

    def claims(self):
        """What is held and promised, and windows."""
        found = []
        for job in self.running:
            end = self.slot(max(self.now, job.start + job.estimate))
            found += [Claim(n, g, self.now, end, c) for n, g, c in job.where]
        for n, start, end in self.windows:
            if self.now < end:
                begin = self.now if start <= self.now else max(self.now, self.slot(start, up=False))
                found.append(Claim(n, self.sizes[n], begin, self.slot(end), (1 << 64) - 1))
        for begin, job, where in self.promises:
            end = self.slot(begin + job.estimate)
            if self.plan.get("whole"):
                where = [(n, self.sizes[n], (1 << 64) - 1) for n, _, _ in where]
            found += [Claim(n, g, begin, end, c) for n, g, c in where]
        return found

    def state(self, nodes, begin, end, claims):
        """Least room of nodes from an instant to another, and the cells that are taken at any time between."""
        room = {n: self.sizes[n] for n in nodes}
        bits = dict.fromkeys(nodes, 0)
        claims_of = {n: [] for n in nodes}
        for c in claims:
            if c.node in claims_of and c.begin < end and c.end > begin:
                claims_of[c.node].append(c)
        for n, mine in claims_of.items():
            for at in {begin} | {c.begin for c in mine if c.begin > begin}:
                held = sum(c.gpus for c in mine if c.begin <= at < c.end)
                room[n] = max(0, min(room[n], self.sizes[n] - held))
            for c in mine:
                bits[n] |= c.cell
        return room, bits

    def place(self, job, kind, begin, claims, now=False):
        """Nodes of a type for a job from an instant on; `now`: beside what is truly held as well."""
        nodes = [n for n, t in enumerate(self.types) if t == kind]
        room, bits = self.state(nodes, begin, self.slot(begin + job.estimate), claims)
        for other in self.running if now else ():
            for n, _, cell in other.where:
                if n in room:
                    held = sum(g for o in self.running for m, g, _ in o.where if m == n)
                    room[n] = min(room[n], self.sizes[n] - held)
                    bits[n] = bits[n] | cell
        rule = self.rule
        if rule == "relax":
            rule = "consolidate" if self.now < job.submit + self.patience else "pack"
        got = choose(rule, room, bits, {n: self.sizes[n] for n in nodes}, job.gpus, job.nodes)
        if got is None:
            return None
        cells = dict.fromkeys(got, 0)
        if rule == "buddy":
            for n, gpus in got.items():
                whole = -(-gpus // PART)
                cells[n] = ((1 << whole) - 1) << cell_of(bits[n], self.sizes[n] // PART, whole)[1]
        return [(n, gpus, cells[n]) for n, gpus in got.items()]

    def try_start(self, job):
        claims = self.claims()
        for kind in sorted(set(self.types)):
            where = self.place(job, kind, self.now, claims, now=True)
            if where:
                job.start = self.now
                job.where = where
                self.running.append(job)
                self.waiting.remove(job)
                return True
        return False

    def promise(self, job):
        """Promise a job the first instant at which it fits."""
        best = (INF, None)
        claims = self.claims()
        for kind in sorted(set(self.types)):
            mine = [c for c in claims if self.types[c.node] == kind]
            for begin in sorted({self.now} | {c.end for c in mine if c.end > self.now}):
                if begin >= best[0]:
                    break
                where = self.place(job, kind, begin, claims)
                if where:
                    best = begin, where
        if best[1] and best[0] - self.now <= self.plan["window"]:
            self.promises.append((best[0], job, best[1]))
            return True
        return False

    def keep(self):
        """Go through the promises that stand."""
        self.promises = [(max(begin, self.now), job, where) for begin, job, where in self.promises]
        for promise in list(self.promises):
            at = self.promises.index(promise)
            del self.promises[at]
            if not self.try_start(promise[1]) and self.promise(promise[1]):
                self.promises.insert(at, self.promises.pop())

    def decide(self):
        plan = self.plan
        known = any(self.now < end for _, _, end in self.windows)
        strict = plan["every"] and self.slot_of_plans() > self.now
        if plan["keep"]:
            self.keep()
        else:
            self.promises = []
        kept = [job for _, job, _ in self.promises]
        blocked = known or plan["keep"]
        tested = plan["tested"] - len(kept)
        for place, job in enumerate([job for job in self.waiting if job not in kept]):
            if blocked and place >= tested:
                break
            if self.try_start(job):
                continue
            blocked = True
            if strict:
                break
            if len(self.promises) < self.depth and self.now - job.submit >= plan["min_age"]:
                self.promise(job)
        self.promises.sort(key=lambda promise: promise[0])

    def slot_of_plans(self):
        return math.ceil(self.now / self.plan["every"] - 1e-9) * self.plan["every"]

    def starts(self):
        """Start of each job (s), from event to event."""
        self.running = []
        self.waiting = []
        todo = list(self.jobs)
        while todo or self.waiting:
            self.running = [job for job in self.running if job.start + job.duration > self.now]
            while todo and todo[0].submit <= self.now:
                self.waiting.append(todo.pop(0))
            if self.waiting:
                self.decide()
            times = [job.start + job.duration for job in self.running] + [job.submit for job in todo]
            times += [t for _, start, end in self.windows for t in (start, end)]
            if self.rule == "relax":
                times += [job.submit + self.patience for job in self.waiting]
            if self.plan["every"] and self.waiting:
                times.append((math.floor(self.now / self.plan["every"]) + 1) * self.plan["every"])
            times = [t for t in times if t > self.now]
            if not times:
                break
            self.now = min(times)
        return [job.start for job in self.jobs]
