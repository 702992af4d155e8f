  // The first screen of two runs: figures, story and table of one record, and of what is looked at: `view` --------------
  const HOUR = 3600, DAY = 24, POINTS = 440, SIDES = { l: 46, r: 10, b: 24 };
  const BELOW = 0.83; // share of the height below the bars of a job
  const MOST = 1500, OTHERS = 1400, FEW = 400; // dots of jobs that end later, and of the others; up to FEW of the former are large
  const FAR = 200; // dots of those that change most, where not all are drawn
  const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
  const BANDS = [["1 GPU", 1], ["2", 2], ["3 to 4", 4], ["5 to 8", 8], ["9 to 16", 16], ["over 16", Infinity]];
  const RUN_TIMES = [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [21600, "6 h"], [86400, "1 d"], [604800, "7 d"]];
  const ALL = 1e9; // end of a span that has none
  const LITTLE = 1e-9; // hours: what rounding may do to an end
  const MINUTES = [0, 1 / 60, 5 / 60, 15 / 60, 30 / 60]; // the same where nothing changes by an hour
  const STEPS = [0, 1, 4, 12, 24, 50, 100, 200, 400, 1000]; // hours at which the axis of changes may have ticks
  const UNITS = [[4 * 86400, 86400, "d"], [HOUR, HOUR, "h"], [60, 60, "min"], [0, 1, "s"]];
  const HEADS = [ // columns of the table, their hints, and what their values are
    ["average time<br>to finish", "From submission to end, averaged over the jobs (average JCT); lower is better."],
    ["half of the jobs<br>are done within", "Half of the jobs take less than this from submission to end (median JCT); lower is better."],
    ["slowest 1 %<br>take more than", "Only one job in a hundred takes longer than this (p99 JCT); lower is better."],
    ["average<br>wait", "The part of a job's time without GPUs, averaged over the jobs (queueing); lower is better."],
    ["treated<br>unfairly", "Jobs that take longer than alone on their fair share, 1/N of the cluster when N jobs are there (unfair fraction); lower is better."],
    ["GPUs<br>in use", "Share of the GPU-hours held until the last job ended (utilisation), of all jobs; higher is better."],
    ["times a job<br>was stopped", "How often the policy took a running job's GPUs away (preemptions); lower is better."],
    ["late, of those<br>with a deadline", "Jobs that end after their (first) deadline, of those that have one; lower is better."],
    ["what all<br>jobs cost", "GPU-hours held or kept in reserve, at their prices; lower is better."],
  ];
  const OWN = { late: 7, cost: 8 }, INSTEAD = [1, 4]; // columns of what a system is judged by, and those in whose place they stand
  const WHO = { "jobs that run short": "run for at most", "jobs that run long": "run for more", "jobs of many GPUs": "need more", nobody: "" };
  const ROLES = {
    now: { line: "#0067A5", ink: "#0067A5", wash: "rgba(0,103,165,0.16)" }, then: { line: "#56616D", ink: "#56616D", wash: "rgba(138,148,160,0.22)" },
    pays: { line: "#D55E00", ink: "#B04500" }, veil: "rgba(255,255,255,0.8)", ink: "#1F2933", grid: "#E1E5EA",
  };
  LOOK.dark = { ...LOOK.dark, "#0067A5": "#4FA8E8", "rgba(0,103,165,0.16)": "rgba(79,168,232,0.22)", "#56616D": "#B3BDC8",
    "rgba(138,148,160,0.22)": "rgba(135,147,160,0.24)", "#B04500": "#FF9D5C", "rgba(255,255,255,0.8)": "rgba(20,24,28,0.8)" };

  const NUMBER = new Intl.NumberFormat("en"); // made once: with toLocaleString it would be a third of a drawing
  const written = (n) => NUMBER.format(n);
  const plural = (n, one) => `${written(n)} ${one}${n === 1 ? "" : "s"}`;
  const two = (n) => written(n < 100 ? Math.round(n) : Number(n.toPrecision(2)));
  const safe = (text) => String(text).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const canvas = document.createElement("canvas").getContext("2d");
  function wide(text, size) { // pixels
    canvas.font = `700 ${size}px ${LOOK.template?.layout?.font?.family ?? "sans-serif"}`;
    return canvas.measureText(text).width;
  }
  function span(seconds, figures = 2) {
    if (!Number.isFinite(seconds)) return "none";
    const [, unit, name] = UNITS.find(([from]) => seconds >= from), x = seconds / unit;
    if (name === "s" && x < 9.95) return `${Number(x.toPrecision(figures))} s`;
    return `${name === "s" || x >= 100 ? written(Math.round(x)) : x.toFixed(x >= 9.95 ? figures - 2 : figures - 1)} ${name}`;
  }
  const percent = (x) => (x > 0 && x < 0.001 ? "under 0.1 %" : `${(100 * x).toFixed(x > 0 && x < 0.0995 ? 1 : 0)} %`);
  const timesOf = (ratio) => `${ratio >= 2.75 ? written(Math.round(ratio)) : Math.round(2 * ratio) / 2} times`;
  const SHARES = [4, 5, 7], MORE = [5], COUNTS = [6]; // columns of shares, of which more is better, and of counts
  const shown = (k, v) => (!Number.isFinite(v) ? "–" : k === OWN.cost ? `$${v.toFixed(2)}` : SHARES.includes(k) ? percent(v) : COUNTS.includes(k) ? written(v) : span(v, 3));
  // How a value changed, and whether for the worse.
  function changed(k, now, before) {
    if (!Number.isFinite(now) || !Number.isFinite(before)) return ["", false];
    if (shown(k, now) === shown(k, before)) return ["same", false];
    const less = now < before, worse = less === MORE.includes(k), way = less ? "less" : "more", by = Math.abs(now - before);
    if (SHARES.includes(k)) return [`${by < 0.01 ? "under 1 pt" : `${Math.round(100 * by)} pt${by < 0.015 ? "" : "s"}`} ${way}`, worse];
    if (COUNTS.includes(k)) return [`${written(by)} ${less ? "fewer" : "more"}`, worse];
    const ratio = less ? before / now : now / before;
    if (!Number.isFinite(ratio)) return [less ? "all gone" : "from none", worse];
    return [`${ratio >= 1.95 ? timesOf(ratio) : `${Math.max(1, Math.round((100 * by) / before))} %`} ${way}`, worse];
  }
  function clock(hours, weekday) {
    const day = Math.floor(hours / DAY), pad = (x) => String(Math.floor(x)).padStart(2, "0");
    return `${weekday === null ? `day ${day + 1}` : DAYS[(day + weekday) % 7]} ${pad(hours % DAY)}:${pad((hours % 1) * 60)}`;
  }

  // Jobs -------------------------------------------------------------------------------------------------------------
  const bandOf = (gpus) => BANDS.findIndex(([, most]) => gpus <= most);
  // Where a job stands from left to right: the log of its run time, or its band of GPUs with a shift by its number.
  const placeOf = (r, by, i) => by === "run" ? Math.log10(Math.max(r.duration[i], 1)) : bandOf(r.gpus[i]) + 0.12 + (0.76 * ((i * 2654435761) % 2 ** 32)) / 2 ** 32;
  const inside = (value, window) => !window || (value >= window[0] && value <= window[1]);
  const rowsOf = (r, has) => [...(r.rows ?? r.submit.keys())].filter(has);
  // Of a large log some rows are sent, and lines and counts of all: columns are as long as the log, so that a job has one number.
  function whole(record) {
    if (!record.rows) return record;
    const columns = ["gpus", "submit", "duration", "now", "before", "moved"].map((name) => {
      const all = new Float32Array(record.all.jobs);
      record.rows.forEach((row, k) => (all[row] = record[name][k]));
      return [name, all];
    });
    return { ...record, ...Object.fromEntries(columns) };
  }
  const sized = (r, view, i) => inside(view.by === "run" ? r.duration[i] : r.gpus[i], view.size);
  const inSize = (r, view) => rowsOf(r, (i) => sized(r, view, i));
  // A span of run times or GPUs on the axis of the dots.
  const onAxis = ({ by, size: [low, high] }) => by === "run" ? [Math.log10(Math.max(low, 0.1)), Math.log10(high)] : [bandOf(low), bandOf(high) + 1];
  const inTime = (r, view) => rowsOf(r, (i) => inside(r.submit[i] / HOUR, view.time));
  const later = (r, i) => (r.now[i] - r.before[i]) / HOUR;
  // The value of a rank among the largest: most lie below one of a sample, and need not be sorted.
  function ranked(values, rank) {
    const sample = values.filter((_, i) => i % 16 === 0).sort(), most = values.filter((v) => v >= sample.at(-Math.ceil(rank / 8))).sort();
    return most.at(-rank) ?? values.slice().sort().at(-rank);
  }
  // Dots of some rows: those that change most, and one in so many of the others.
  function thinned(r, rows, most) {
    if (rows.length <= most) return rows;
    const change = new Float32Array(rows.length), far = [], rest = [];
    rows.forEach((i, k) => { change[k] = Math.abs(later(r, i)); });
    const least = ranked(change, FAR);
    rows.forEach((i, k) => (change[k] > least ? far : rest).push(i));
    const step = Math.ceil(rest.length / (most - FAR));
    return far.concat(rest.filter((_, q) => q % step === 0));
  }

  // Lines that are sent, without what follows the last job but a few.
  function cutOff(r) {
    const { hours, now, before } = r.lines, top = now.reduce((a, n, i) => Math.max(a, n, before[i]), 0);
    const seen = now.findLastIndex((n, i) => Math.max(n, before[i]) > 0.01 * top), end = Math.min(seen < 0 ? POINTS - 1 : seen + 3, POINTS - 1);
    const at = Array.from({ length: POINTS }, (_, i) => Math.round((i * end) / (POINTS - 1)));
    return { hours: at.map((i) => hours[i]), now: at.map((i) => now[i]), before: at.map((i) => before[i]) };
  }

  // How many jobs of both runs are there at each of some times (h): the area below is the sum of the times to finish.
  function counts(r, rows) {
    if (r.lines) return cutOff(r);
    const submit = rows.map((i) => r.submit[i]), all = r.submit.reduce((a, b) => Math.max(a, b), 1);
    const ends = [r.now, r.before].map((took) => rows.map((i, k) => submit[k] + took[i]).filter(Number.isFinite));
    const upTo = (values, last) => { // how many are at most each instant
      const n = new Int32Array(POINTS);
      for (const value of values) if (value <= last) n[Math.ceil((value / last) * (POINTS - 1))] += 1;
      return n.forEach((_, i) => { n[i] += i && n[i - 1]; }) ?? n;
    };
    let last = [...ends[0], ...ends[1]].reduce((a, b) => Math.max(a, b), all), lines;
    for (let round = 0; round < 2; round += 1) { // what follows the last job but a few is cut off
      const came = upTo(submit, last);
      lines = ends.map((each) => { const gone = upTo(each, last); return Array.from(came, (n, i) => n - gone[i]); });
      const top = Math.max(...lines[0], ...lines[1]), seen = lines[0].findLastIndex((n, i) => Math.max(n, lines[1][i]) > 0.01 * top);
      if (!round) last = Math.max(seen < 0 ? last : (Math.min(seen + 3, POINTS - 1) * last) / (POINTS - 1), all);
    }
    return { hours: lines[0].map((_, i) => (i * last) / (POINTS - 1) / HOUR), now: lines[0], before: lines[1] };
  }

  const upright = (x, look) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", layer: "below", line: { color: ROLES.grid, width: 1, ...look } });
  const named = (text, role, more) => ({ text: `<b>${safe(text)}</b>`, showarrow: false, font: { size: 13, color: role.ink }, ...more });
  const TICKS = { showgrid: false, ticks: "", tickfont: { size: 12 }, ticklabeloverflow: "allow" }; // margins make room

  // What lies outside a window is veiled.
  function framed([from, to], low, high) {
    const box = { type: "rect", yref: "paper", y0: 0, y1: 1 }, a = Math.max(from, low), b = Math.min(to, high);
    const veils = [[low, a], [b, high]].filter(([p, q]) => q > p).map(([p, q]) => ({ ...box, x0: p, x1: q, fillcolor: ROLES.veil, line: { width: 0 } }));
    return [...veils, { ...box, x0: a, x1: b, line: { color: ROLES.ink, width: 1.5 } }];
  }

  // Names of the lines, each where it fits without touching one, or both in a corner; and how high the axis is, in tops.
  function namesOn(r, c, top, width, height) {
    const half = Math.ceil((((Math.max(...r.names.map((name) => wide(name, 13))) + 8) / width) * POINTS) / 2), high = (19 / height) * top;
    let between = { gap: 1.1 * high }, over = {};
    for (let i = half; i < POINTS - half; i += 1) {
      let floor = Infinity, under = 0, above = 0, ahead = 0;
      for (let k = i - half; k <= i + half; k += 1) {
        floor = Math.min(floor, Math.max(c.now[k], c.before[k]));
        under = Math.max(under, Math.min(c.now[k], c.before[k]));
        above = Math.max(above, c.now[k], c.before[k]);
        ahead += c.now[k] >= c.before[k];
      }
      if (ahead && ahead <= 2 * half) continue; // they cross
      if (floor - under > between.gap) between = { gap: floor - under, at: i, y: under, first: Boolean(ahead) };
      if (above > (over[Boolean(ahead)]?.y ?? -1)) over[Boolean(ahead)] = { at: i, y: above };
    }
    const roles = [ROLES.now, ROLES.then];
    if (between.at === undefined)
      return { high: 1.24, notes: r.names.map((name, i) => named(name, roles[i], { x: 1, y: 1, xref: "paper", yref: "paper", xanchor: "right", yanchor: "top", yshift: -17 * i })) };
    const upper = between.first ? 0 : 1, note = (which, { at, y }) => named(r.names[which], roles[which], { x: c.hours[at], y, yanchor: "bottom" });
    return { high: 1.13, notes: [note(upper, over[between.first]), note(1 - upper, between)] };
  }

  // Bars of a job above the lines, before and now: filled where it runs; with its times to finish.
  function barsOf(r, lit, end, width) {
    const submit = lit.submit / HOUR, shapes = [upright(submit, { color: ROLES.ink, dash: "dot" })], notes = [];
    for (const [k, which] of [1, 0].entries()) {
      const role = which ? ROLES.then : ROLES.now, took = [lit.now, lit.before][which], done = submit + (took === null ? end : took / HOUR);
      const shown = Math.min(Math.max(done, submit + (3 / width) * end), end), y = { type: "rect", yref: "paper", y0: 0.93 - 0.085 * k, y1: 0.98 - 0.085 * k };
      shapes.push({ ...y, x0: submit, x1: shown, line: { color: role.line, width: 1 }, fillcolor: "#FFFFFF" });
      const spans = []; // those that follow each other within 30 s are one
      for (const [from, to] of lit.held[which])
        if (spans.length && from - spans.at(-1)[1] < 30) spans.at(-1)[1] = Math.max(to, spans.at(-1)[1]);
        else spans.push([from, to]);
      for (const [from, to] of spans)
        shapes.push({ ...y, x0: from / HOUR, x1: Math.min(Math.max(to / HOUR, from / HOUR + end / width), end), line: { width: 0 }, fillcolor: role.line });
      const text = `${r.names[which]}${took === null ? ": not done" : ` ${lit.spans[which]}`}`, room = wide(text, 12) + 8;
      const right = ((end - shown) / end) * width > room, left = (submit / end) * width > room;
      const side = right ? { x: shown, xanchor: "left", xshift: 4 } : left ? { x: submit, xanchor: "right", xshift: -4 } : { x: 1, xref: "paper", xanchor: "right", bgcolor: ROLES.veil };
      notes.push({ text: safe(text), y: 0.955 - 0.085 * k, yref: "paper", yanchor: "middle", showarrow: false, font: { size: 12, color: role.ink }, ...side });
    }
    return { shapes, notes };
  }

  // Ticks of an axis of time: the middles of days; hours of less than two days, every so many days of more than nine.
  function dayTicks(end, weekday) {
    if (end <= 2 * DAY) return { ticksuffix: " h", nticks: 7 };
    const every = Math.max(1, Math.ceil(end / DAY / 9)), numbered = weekday === null || every > 1, days = [];
    for (let day = 0; day * DAY < end - DAY / 2; day += every) days.push(day);
    return { tickvals: days.map((day) => day * DAY + DAY / 2), ticktext: days.map((day, i) => numbered ? `${i ? "" : "day "}${day + 1}` : DAYS[(day + weekday) % 7]) };
  }

  const under = (name) => (name === "before" ? name : `under ${name}`);

  function jobsFigure({ record: r, view, guessing }, width, height) {
    const c = counts(r, inSize(r, view)), end = c.hours.at(-1), shown = guessing ? [c.before] : [c.before, c.now], top = Math.max(4, ...shown.flat());
    const names = guessing ? { notes: [], high: 1.1 } : namesOn(r, c, top, width, height), lit = !guessing && view.job !== null && r.lit?.row === view.job && r.lit.held ? barsOf(r, r.lit, end, width) : null;
    const shapes = [];
    if (end > 2 * DAY && end < 15 * DAY) for (let at = DAY; at < end; at += DAY) shapes.push(upright(at));
    if (view.time) shapes.push(...framed(view.time, 0, end));
    const notes = names.notes.map((note) => (lit && note.yref ? { ...note, y: BELOW } : note));
    const [now, before] = [c.now, c.before].map((line) => Math.max(...line)), most = Math.max(now, before), said = c.hours.map((at) => clock(at, r.weekday));
    const title = guessing ? `Under ${r.names[1]} up to ${two(before)} jobs are there at once`
      : Math.abs(now - before) < 0.1 * most ? `At worst about ${two(most)} jobs at once, under both` : `At worst ${two(now)} jobs at once; ${under(r.names[1])} ${two(before)}`;
    const line = (y, name, role, wide) => ({ type: "scatter", mode: "lines", x: c.hours, y, name, customdata: said, fill: "tozeroy", fillcolor: role.wash,
      line: { color: role.line, width: wide }, hovertemplate: `%{y:,} jobs under ${safe(name)}, %{customdata}<extra></extra>` });
    return {
      data: [line(c.before, r.names[1], ROLES.then, 2), line(c.now, r.names[0], ROLES.now, 2.5)].slice(0, shown.length),
      layout: {
        title: { text: `${safe(title)}<br>jobs in the cluster, waiting or running` }, annotations: [...notes, ...(lit?.notes ?? [])], shapes: [...shapes, ...(lit?.shapes ?? [])],
        xaxis: { range: [0, end], ...TICKS, ...dayTicks(end, r.weekday) },
        yaxis: { range: [0, (top * names.high) / (lit ? BELOW : 1)], nticks: 5, showline: false, tickformat: ",", ...TICKS, showgrid: true },
      },
    };
  }

  // Small dots are drawn here, as a few paths, since a node a dot takes most of a drawing; plotly has their places, for the mouse.
  const SMALL = 5, LAYERS = 8; // pixels; paths of a trace, as its dots show through one another
  const dotted = (marker) => (marker.size < SMALL ? { mode: "none", meta: { dots: marker } } : { mode: "markers", marker });
  const asMarkers = (trace) => (trace.meta?.dots ? { ...trace, mode: "markers", marker: trace.meta.dots } : trace);
  function dot({ _fullLayout: { xaxis, yaxis } }, groups, data) {
    data.filter(({ x }) => x.length).forEach(({ x, y, meta }, k) => { // plotly makes no group for what is empty
      groups[k].querySelector(".gpuschedlab-dots")?.remove();
      if (!meta?.dots) return;
      const { color, size, opacity } = meta.dots, paths = Array(LAYERS).fill("");
      x.forEach((at, i) => (paths[i % LAYERS] += `M${xaxis.l2p(at).toFixed(1)},${yaxis.l2p(y[i]).toFixed(1)}h0`));
      const look = `fill="none" stroke="${color}" stroke-opacity="${opacity}" stroke-width="${size}" stroke-linecap="round" pointer-events="none"`;
      groups[k].insertAdjacentHTML("beforeend", `<g class="gpuschedlab-dots" ${look}>${paths.map((d) => `<path d="${d}"/>`).join("")}</g>`);
    });
  }

  // One dot per job: how much later (up) or sooner (down) it ends, on an axis of square roots of hours.
  function changeFigure(state, width, height) {
    const { record: r, view } = state, root = (hours) => Math.sign(hours) * Math.sqrt(Math.abs(hours));
    const mine = inTime(r, view).filter((i) => Number.isFinite(later(r, i))), pays = mine.filter((i) => r.moved[i] > 0), others = mine.filter((i) => r.moved[i] <= 0);
    const few = pays.length <= FEW, on = view.job !== null && Number.isFinite(later(r, view.job));
    state.dots = [thinned(r, others, OTHERS), thinned(r, pays, MOST), ...(on ? [[view.job]] : [])];
    const looks = [{ color: ROLES.now.line, size: 4.5, opacity: 0.4 }, { color: ROLES.pays.line, size: few ? 7 : 4.5, opacity: few ? 0.9 : 0.55 }];
    if (on) looks.push({ color: (later(r, view.job) > 0 ? ROLES.pays : ROLES.now).line, size: 12, line: { color: ROLES.ink, width: 2.5 } });
    const hours = mine.map((i) => later(r, i)), most = pays.reduce((a, i) => Math.max(a, later(r, i)), 0), sent = mine.filter((i) => r.moved[i] < 0).length;
    const all = r.all ?? { later: pays.length, sooner: sent, same: others.length - sent };
    let low = root(hours.reduce((a, b) => Math.min(a, b), 0)), high = root(hours.reduce((a, b) => Math.max(a, b), 0));
    const tall = Math.max(high - low, 0.6), [x, y] = r.names, place = (i) => placeOf(r, view.by, i);
    [low, high] = [Math.min(low - 0.1 * tall, -0.16 * tall), Math.max(high + 0.1 * tall, 0.16 * tall)];
    const hover = (i) => safe(`${plural(r.gpus[i], "GPU")}, runs ${span(r.duration[i])}`) + safe(`\n${x}: done after ${span(r.now[i])}\n${y}: done after ${span(r.before[i])}`).replaceAll("\n", "<br>");
    const worded = (i) => ({ toString: () => hover(i) }); // words are made when the mouse asks for them
    const data = state.dots.map((rows, k) => ({ type: "scatter", x: rows.map(place), y: rows.map((i) => root(later(r, i))), customdata: rows.map(worded),
      ...dotted({ line: { width: 0 }, ...looks[k] }), hovertemplate: "%{customdata}<extra></extra>" }));
    const beside = (text, at, role, yanchor) => named(text, role, { x: 0, xref: "paper", y: at, yref: "paper", xanchor: "left", yanchor, xshift: 4, bgcolor: ROLES.veil });
    const notes = [beside("ends later", 1, ROLES.pays, "top"), beside("ends sooner", 0.004, ROLES.now, "bottom")];
    const bands = BANDS.slice(0, bandOf(r.gpus.reduce((a, b) => Math.max(a, b), 1)) + 1); // those that some job asks for, and below
    const end = view.by === "gpus" ? bands.length : Math.log10(r.duration.reduce((a, b) => Math.max(a, b), 10)) + 0.12, start = view.by === "gpus" ? 0 : -0.12;
    if (on && r.lit?.row === view.job) {
      const left = ((place(view.job) - start) / (end - start)) * width > wide(`job ${r.lit.id}`, 12) + 16;
      notes.push({ text: `<b>job ${safe(r.lit.id)}</b>`, x: place(view.job), y: root(later(r, view.job)), showarrow: false, font: { size: 12 }, bgcolor: ROLES.veil,
        ...(left ? { xanchor: "right", xshift: -10 } : { xanchor: "left", xshift: 10 }) });
    }
    const pixel = height / (high - low), ticks = [];
    for (const step of (Math.max(-low, high) < 1 ? MINUTES : STEPS).flatMap((v) => (v ? [v, -v] : [0])))
      if (step === 0 || (root(step) > low + 10 / pixel && root(step) < high - 10 / pixel && ticks.every((other) => Math.abs(root(step) - root(other)) * pixel > 20))) ticks.push(step);
    const times = RUN_TIMES.filter(([at]) => Math.log10(at) < end);
    const across = view.by === "gpus" ? { tickvals: bands.map((_, i) => i + 0.5), ticktext: bands.map(([name]) => name) }
      : { tickvals: times.map(([at]) => Math.log10(at)), ticktext: times.map(([, text]) => text) };
    const title = all.later ? `${plural(all.later, "job")} end${all.later === 1 ? "s" : ""} later, by up to ${span(HOUR * most)}; ${all.sooner ? written(all.sooner) : "none"} sooner`
      : mine.some((i) => later(r, i) > LITTLE) ? "No job ends much later"
      : mine.some((i) => later(r, i) < -LITTLE) ? "No job ends later" : "Every job ends when it did";
    const [some, paying] = state.dots.map((rows) => rows.length), drawn = some + paying, rest = all.sooner + all.same, jobs = all.later + rest;
    const of = (n, total) => (n >= total ? `all ${written(total)}` : `${written(n)} of the ${written(total)}`);
    const which = `${of(paying, all.later)} that end later and ${of(some, rest)} others${drawn < jobs ? ", with those that change most" : ""}`;
    return {
      data,
      layout: {
        title: { text: `${title}<br>${drawn < jobs ? `${written(drawn)} of ${written(jobs)} jobs` : "each dot is a job"}, by` }, annotations: notes,
        shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 0, y1: 0, line: { color: ROLES.ink, width: 1.2 } }, ...(view.size ? framed(onAxis(view), start, end) : [])],
        xaxis: { range: [start, end], ...TICKS, ...across },
        yaxis: { range: [low, high], showline: false, ...TICKS, showgrid: true, tickvals: ticks.map(root), ticktext: ticks.map((v) => (v ? `${v > 0 ? "+" : "\u2212"}${Math.abs(v) < 1 ? `${Math.round(60 * Math.abs(v))} min` : `${Math.abs(v)} h`}` : "0")) },
        meta: { choice: { now: view.by, of: [["run", "how long it runs"], ["gpus", "GPUs it needs"]] },
          hint: `Height: how much later (up) or sooner (down) a job ends; an axis of square roots, on which minutes and days are both seen. Drawn: ${which}.` },
      },
    };
  }

  // Words --------------------------------------------------------------------------------------------------------------
  function tableHtml({ record: { table: t, names } }) {
    const hinted = ([head, hint]) => `<th scope="col"><span tabindex="0" data-hint="${safe(hint)}">${head}</span></th>`;
    const [value, low, high] = t.ratio.map((x) => x?.toPrecision(3)), other = low && `, 95 % interval ${low} to ${high}. Another stretch may differ by so much`;
    const sure = ` <span tabindex="0" data-hint="${safe(`Average of ${names[1]} over that of ${names[0]}: ${value}${other ?? ""}`)}.">±</span>`;
    const own = (t.own ?? []).filter(([measure]) => measure in OWN), left = INSTEAD.slice(0, own.length);
    const columns = [...own.map(([measure]) => OWN[measure]), ...[...t.values[0].keys()].filter((k) => !left.includes(k))];
    const [now, before] = t.values.map((row, i) => Object.assign([...row], Object.fromEntries(own.map(([measure, ...both]) => [OWN[measure], both[i]]))));
    const cells = (values, i) => `<tr><th scope="row"><b class="${i ? "ref" : "now"}">${safe(names[i])}</b></th>${columns.map((k) => `<td>${shown(k, values[k] ?? NaN)}</td>`).join("")}</tr>`;
    const rows = [now, before].slice(0, t.values.length).map(cells);
    const cell = (k) => {
      const [text, worse] = changed(k, now[k] ?? NaN, before[k] ?? NaN);
      return `<td${worse ? ' class="worse"' : ""}>${text}${worse ? ' <span aria-label="worse">✗</span>' : ""}${k ? "" : sure}</td>`;
    };
    if (before) rows.push(`<tr class="gpuschedlab-change"><th scope="row">difference</th>${columns.map(cell).join("")}</tr>`);
    return `<table class="gpuschedlab-table gpuschedlab-wide-table"><thead><tr><td>${t.jobs === null ? "" : plural(t.jobs, "job")}</td>${columns.map((k) => hinted(HEADS[k])).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
  }

  function storyHtml({ record: r, view }) {
    if (view.job === null) {
      const next = r.kind === "self" ? "<b>Try</b> another policy, or move a knob."
        : r.moved.some((way) => way > 0) ? "<b>Try</b> the orange dots: who are they, and is it always they?" + (r.recorded ? "" : " <i>more</i> has the rest.")
          : `<b>Try</b> fewer nodes${r.recorded ? "" : " (in <i>more</i>)"}: which policy suffers first?`;
      if (r.stories) return `<div class="gpuschedlab-story"><b>Click a dot</b>, or press <b>← →</b> in the right figure: why did that job wait? Recorded for the ${Object.keys(r.stories).length} jobs whose end moves most.</div>`;
      return `<div class="gpuschedlab-story"><b>Click a dot</b>: why did that job wait? <b>← →</b> in the right figure step through the jobs, those that pay first.<br>
        <b>Drag</b> over days or over dots: the other figure, the sentence and the table follow; <b>Esc</b> shows all again.<br>${
        view.time || view.size ? '<button type="button" data-look="all">show all jobs</button>' : next}</div>`;
    }
    const lit = r.lit?.row === view.job ? r.lit : null, i = view.job;
    const about = `${plural(r.gpus[i], "GPU")}, runs ${span(r.duration[i])}, submitted ${clock(r.submit[i] / HOUR, r.weekday)}`;
    const part = (which, role) => `<div><b class="${role}">${safe(r.names[which])}</b>: ${safe(lit?.why[which] ?? (r.stories ? "its waits are not recorded here" : "…"))}</div>`;
    return `<div class="gpuschedlab-story gpuschedlab-job"><div><b>Job ${safe(lit?.id ?? "…")}</b>: ${about}. <button type="button" data-look="job">close</button></div>
      <div class="gpuschedlab-both">${part(1, "ref")}${part(0, "now")}</div></div>`;
  }

  // What a key changes of what is looked at.
  function moved(state, name, key) {
    const { record: r, view } = state, end = r.submit.reduce((a, b) => Math.max(a, b), 0) / HOUR, right = key === "ArrowRight" ? 1 : -1;
    if (name === "change") {
      if (key === "Escape") return { job: null, size: null };
      if (key === "ArrowUp" || key === "ArrowDown") return {};
      const rows = inTime(r, view).filter((i) => sized(r, view, i) && Number.isFinite(later(r, i))).sort((a, b) => later(r, b) - later(r, a) || a - b);
      return { job: rows[Math.min(Math.max(rows.indexOf(view.job) + right, 0), rows.length - 1)] ?? null };
    }
    if (key === "Escape") return { time: null };
    if (!view.time) return { time: [0, Math.min(DAY, end)] };
    const [a, b] = view.time;
    if (key === "ArrowUp" || key === "ArrowDown") return { time: [a, key === "ArrowUp" ? Math.min(end, b + 6) : Math.max(a + 6, b - 6)] };
    const from = Math.min(Math.max(a + 6 * right, 0), Math.max(end - (b - a), 0));
    return { time: [from, from + b - a] };
  }

  // What a drag over part of an axis changes.
  function dragged({ record: r, view }, name, [from, to]) {
    if (name === "change" && view.by === "run") {
      const longest = Math.log10(r.duration.reduce((x, y) => Math.max(x, y), 1)), few = (x) => Number((10 ** x).toPrecision(2));
      return to - from > 0.08 ? { size: [from <= 0 ? 0 : few(from), to >= longest ? ALL : few(to)] } : {};
    }
    if (name === "change") {
      const bands = BANDS.map((_, i) => i).filter((i) => from <= i + 0.5 && i + 0.5 <= to);
      return bands.length ? { size: [bands[0] ? BANDS[bands[0] - 1][1] + 1 : 0, Math.min(BANDS[bands.at(-1)][1], ALL)] } : {};
    }
    const a = Math.max(0, Math.round(from)), b = Math.min(Math.ceil(r.submit.reduce((x, y) => Math.max(x, y), 0) / HOUR), Math.round(to));
    return b > a ? { time: [a, b] } : {};
  }

  // Guess first: a slider, four answers and two buttons, scored against what was computed.
  function guessed(box, r, done) {
    const { now, before, group, nobody } = r.guess, [name, other] = r.names.map(safe), at = (value) => 360 * 960 ** (value / 100); // 6 min to 4 d
    box.innerHTML = `<p class="gpuschedlab-sentence">Same jobs, same GPUs: what changes under <b class="now">${name}</b>?</p>
      <p>Under <b class="ref">${other}</b> the average job is done after <b class="ref">${span(before)}</b>. Guess first.</p>
      <p><label>Under <b class="now">${name}</b> the average job is done after <output></output><input type="range" min="0" max="100" step="any"></label></p>
      <p>And who pays: which jobs end later than before?</p>
      <p class="gpuschedlab-who">${Object.keys(WHO).map((who) => `<button type="button" aria-pressed="false">${who}</button>`).join("")}</p>
      <button type="button" class="gpuschedlab-see">See</button> <button type="button">skip</button>`;
    const slider = box.querySelector("input"), output = box.querySelector("output"), [see, skip] = box.querySelectorAll(":scope > button"), answers = [...box.querySelectorAll(".gpuschedlab-who button")];
    slider.value = (100 * Math.log(before / 360)) / Math.log(960);
    (slider.oninput = () => { output.textContent = span(at(slider.value)); })();
    let who = "";
    for (const each of answers)
      each.onclick = () => { who = each.textContent; answers.forEach((other) => other.setAttribute("aria-pressed", other === each)); };
    skip.onclick = () => done("");
    see.onclick = () => {
      const ratio = at(slider.value) / now, off = Math.max(ratio, 1 / ratio), far = off >= 1.95 ? `${Math.round(off)} times` : `${Math.round(100 * (off - 1))} %`;
      const right = who === "nobody" ? nobody : Boolean(group) && group.startsWith(WHO[who]);
      done(`Your guess: ${span(at(slider.value))}, ${off < 1.25 ? "right" : `${far} too ${ratio > 1 ? "long" : "short"}`}${who ? `; ${who} pay${who === "nobody" ? "s" : ""}: ${right ? "right" : "no"}` : ""}.`);
    };
  }

  const SCREEN = { jobs: jobsFigure, change: changeFigure, story: storyHtml, table: tableHtml };
