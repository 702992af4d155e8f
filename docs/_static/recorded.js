// The Explorer's first screen from recorded states: the page answers itself what a kernel would.
(() => {
  const PLACES = [
    ...["jobs", "change"].map((name) => ({ name, height: 560, wide: false, width: null, least: 240, words: false, more: false })),
    ...["story", "table"].map((name) => ({ name, height: 300, wide: false, width: null, least: 120, words: true, more: false })),
  ];
  const HOUR = 3600, DAY = 24, ALL = 1e9, DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
  const VIEW = { by: "run", job: null, time: null, size: null };
  const safe = (text) => String(text).replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  }

  function make(tag, className, parent, text = "") {
    const made = document.createElement(tag);
    Object.assign(made, { className, textContent: text });
    parent.append(made);
    return made;
  }

  const clock = (hours, weekday) => {
    const day = Math.floor(hours / DAY), pad = (x) => String(Math.floor(x)).padStart(2, "0");
    return `${weekday === null ? `day ${day + 1}` : DAYS[(day + weekday) % 7]} ${pad(hours % DAY)}:${pad((hours % 1) * 60)}`;
  };

  async function begin(el) {
    const page = window.gpuschedlabFigures, all = await unpacked(el.querySelector(":scope > script").textContent);
    const span = page.words.span, inside = (x, window) => !window || (x >= window[0] && x <= window[1]);
    const state = { ...Object.fromEntries(new URLSearchParams(el.dataset.begin)), view: { ...VIEW } };
    const controls = el.querySelector(".gpuschedlab-controls"), [main, rest] = controls.querySelectorAll("p");
    const frame = el.querySelector(".gpuschedlab-frame"), took = {};
    const key = (...parts) => [state.nodes, ...parts].join("/");
    const times = (name) => (took[key(name)] ??= all.more[key(name)].map((more, i) => (more === null ? NaN : all.duration[i] + more)));

    // Controls: one row of native buttons and a list, for mouse and keys.
    const strip = make("div", "gpuschedlab-strip", controls), says = make("p", "gpuschedlab-says", controls);
    const choice = (name, label, values) => {
      const group = make("span", "gpuschedlab-policy", strip);
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", label);
      if (label !== "policy") make("span", "gpuschedlab-name", group, `${label} `);
      for (const value of values) {
        const button = make("button", "", group, value);
        Object.assign(button, { type: "button", onclick: () => { state[name] = String(value); show(); } });
        button.dataset[name] = value;
      }
    };
    choice("policy", "policy", all.names);
    const label = make("label", "gpuschedlab-name", strip, "against "), list = make("select", "", label);
    for (const name of all.names) make("option", "", list, name);
    list.onchange = () => { state.against = list.value; show(); };
    choice("nodes", "nodes", all.nodes);
    const link = make("button", "gpuschedlab-link", strip, "copy link");
    link.type = "button";
    link.onclick = async () => {
      link.textContent = await navigator.clipboard?.writeText(location.href).then(() => "copied", () => "") || "in the address";
      setTimeout(() => (link.textContent = "copy link"), 1500);
    };

    // What is framed: its words, and figures of the table that times alone give; no verdict, as no interval is recorded for it.
    function of({ by, time, size }) {
      const words = time ? [`submitted ${time.map((at) => clock(at, all.weekday)).join(" to ")}`] : [];
      if (size) {
        const [least, most] = size.map((x) => (by === "run" ? span(x) : `${x} GPUs`)), [verb, more] = by === "run" ? ["run for", "more than"] : ["need", "at least"];
        words.push(`that ${size[0] <= 1 ? `${verb} at most ${most}` : size[1] >= ALL ? `${verb} ${more} ${least}` : `${verb} ${least} to ${most}`}`);
      }
      return words.join(" ");
    }
    function part(rows, values) {
      const mine = rows.map((i) => values[i]).filter(Number.isFinite).sort((a, b) => a - b), at = (q) => {
        const x = q * (mine.length - 1), low = Math.floor(x);
        return mine[low] + (mine[Math.min(low + 1, mine.length - 1)] - mine[low]) * (x - low);
      };
      return mine.length ? [mine.reduce((a, b) => a + b, 0) / mine.length, at(0.5), at(0.99), NaN, NaN, NaN, NaN] : Array(7).fill(NaN);
    }

    function record(mark) {
      const { policy, against, view } = state, [now, before] = [policy, against].map(times), [first, second, kind, ratio, least] = all.pairs[key(policy, against)];
      const moved = now.map((t, i) => { const change = t - before[i]; return change > least ? 1 : -change > least ? -1 : 0; });
      let table = { values: [policy, against].slice(0, kind === "self" ? 1 : 2).map((name) => all.table[key(name)]), jobs: null, ratio }, words = [first, second];
      if (view.time || view.size) {
        const rows = [...now.keys()].filter((i) => inside(all.submit[i] / HOUR, view.time) && inside(view.by === "gpus" ? all.gpus[i] : all.duration[i], view.size) && Number.isFinite(now[i]) && Number.isFinite(before[i]));
        const values = [now, before].map((each) => part(rows, each)), [a, b] = values.map(([mean]) => mean), later = rows.filter((i) => moved[i] > 0).length;
        const jobs = `${rows.length.toLocaleString("en")} job${rows.length === 1 ? "" : "s"} ${of(view)}`;
        table = { values: values.slice(0, table.values.length), jobs: rows.length, ratio: [b / a] };
        words = rows.length === 0 ? [`There are no jobs ${safe(of(view))}: nothing to compare.`, ""] : [
          `${all.place ? `${all.place}, under` : "Under"} <b class="now">${safe(policy)}</b> the average of the ${safe(jobs)} is done after <b class="now">${span(a)}</b>, under <b class="ref">${safe(against)}</b> after <b class="ref">${span(b)}</b>.`,
          later ? `<b class="pay">${later.toLocaleString("en")} of them pay</b>: they end later.`
            : rows.some((i) => now[i] > before[i]) ? "None of them ends much later." : "None of them ends later."];
      }
      main.innerHTML = words[0];
      main.classList.toggle("gpuschedlab-long", main.textContent.length > 115);
      rest.innerHTML = words[1];
      let lit = null;
      if (view.job !== null) {
        const stories = [policy, against].map((name) => all.stories[key(name)]?.[view.job]), i = view.job, [a, b] = [now, before].map((each) => (Number.isFinite(each[i]) ? each[i] : null));
        const spans = [a, b].map((t) => (t === null ? "" : span(t)));
        const why = stories.map((story, k) => story?.[0] ?? `Done after ${spans[k]}. When it waited is not recorded; in a notebook the Explorer says why.`);
        lit = { row: i, id: all.ids[i], why, logged: true, now: a, before: b, submit: all.submit[i], spans, held: stories.every(Boolean) ? stories.map((story) => story[1]) : null };
      }
      return { names: policy === against ? ["now", "before"] : [policy, against], gpus: all.gpus, submit: all.submit, duration: all.duration, now, before, moved, weekday: all.weekday,
        view: { ...view }, kind, table, lit, mark, recorded: true };
    }

    const KEYS = { policy: all.names, against: all.names, nodes: all.nodes.map(String) };
    function written() {
      const { view } = state, found = new URLSearchParams(Object.keys(KEYS).map((name) => [name, state[name]]));
      if (view.by !== "run") found.set("by", view.by);
      if (view.job !== null) found.set("job", all.ids[view.job]);
      for (const name of ["time", "size"]) if (view[name]) found.set(name, view[name].join("_"));
      return found.toString();
    }
    // The address holds the state of the page's first screen; what it does not know is left as it was.
    function restored() {
      const words = new URLSearchParams(location.hash.slice(1));
      for (const [name, values] of Object.entries(KEYS)) if (values.includes(words.get(name))) state[name] = words.get(name);
      const spans = Object.fromEntries(["time", "size"].map((name) => [name, words.get(name)?.split("_").map(Number) ?? null]).filter(([, window]) => !window || (window.length === 2 && window.every(Number.isFinite))));
      const job = all.ids.indexOf(words.get("job"));
      state.view = { ...VIEW, ...spans, by: words.get("by") === "gpus" ? "gpus" : "run", job: job < 0 ? null : job };
    }

    const grid = page.grid(frame.querySelector(".gpuschedlab-two"), PLACES, {
      compact: true,
      ask(what, value) {
        if (what !== "view") return;
        const { mark, ...view } = value;
        state.view = view;
        show(mark);
      },
    });
    const addressed = document.querySelector(".gpuschedlab-recorded") === el;
    function show(mark = "") {
      for (const name of Object.keys(KEYS))
        for (const button of strip.querySelectorAll(`[data-${name}]`)) {
          button.classList.toggle("mod-active", button.dataset[name] === state[name]);
          button.setAttribute("aria-pressed", button.dataset[name] === state[name]);
        }
      list.value = state.against;
      says.innerHTML = `${all.says[all.names.indexOf(state.policy)]} ${all.ids.length.toLocaleString("en")} jobs on ${safe(all.cluster[state.nodes])}.`;
      grid.show({ jobs: { record: record(mark) } });
      if (addressed && (mark || location.hash || show.done)) history.replaceState(null, "", `#${written()}`);
      show.done = true;
    }
    const shade = () => el.classList.toggle("gpuschedlab-dark", page.themeOf(el.querySelector(".gpuschedlab-figure")).dark);
    new MutationObserver(() => setTimeout(shade)).observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    if (addressed && location.hash.includes("policy=")) restored();
    window.addEventListener("hashchange", () => { if (addressed && location.hash.includes("policy=")) { restored(); show(); } });
    show();
    shade();
    el.dataset.begun = true;
  }

  document.querySelectorAll(".gpuschedlab-recorded").forEach(begin);
})();
