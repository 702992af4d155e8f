// Draws figures in a grid; the same code serves widgets, saved notebooks and reports. /*LOOK*/ stands for the house style.
(() => {
  if (window.gpuschedlabFigures) return;
  const LOOK = /*LOOK*/ {};
  const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };
  const NARROW = 640; // pixels, below which the legend stands above a figure
  const LOW = 260; // pixels, below which vertical titles lie above their axes
  const NOTE = 12; // pixels of such a title
  const LOWEST = 200, CAPTION = 42, FULL = 900; // pixels: least height of a figure, what stands above it, its height in full screen
  const LEAST = 240, BESIDE = 72, SCALE = 90, GAP = 14; // pixels: least width of a plot, of what stands beside it, of a colour scale, between columns
  const ROOMY = 800; // pixels: in a wider grid figures keep their columns, as a first screen is laid out for them
  const FITS = 3; // drawings after which figures keep their height, should it not settle

  // plotly: given once to a page, by whichever output carries it, gzipped -------------------------------------------
  let arrived, failed, given = false;
  const library = new Promise((done, fail) => { arrived = done; failed = fail; });
  library.catch(() => {});

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  const unpacked = (bytes) =>
    new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();

  function use(plotly) {
    given = true;
    arrived(plotly);
  }

  async function give(bytes) {
    if (given) return;
    given = true;
    try {
      const module = { exports: {} };
      const code = await unpacked(typeof bytes === "string" ? bytesOf(bytes) : bytes);
      new Function("module", "exports", "define", "require", code)(module, module.exports);
      arrived(module.exports);
    } catch (error) {
      failed(error);
    }
  }

  // Numbers ---------------------------------------------------------------------------------------------------------
  function decoded(value) {
    if (Array.isArray(value)) return typeof value[0] === "object" ? value.map(decoded) : value;
    if (value === null || typeof value !== "object") return value;
    if (value.dtype && !Array.isArray(value.shape)) return value; // as plotly itself writes arrays
    if (!value.dtype) return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, decoded(part)]));
    const from = typeof value.bdata === "string" ? bytesOf(value.bdata) : value.bdata;
    const flat = new ARRAYS[value.dtype](from.buffer.slice(from.byteOffset, from.byteOffset + from.byteLength));
    const [rows, columns] = value.shape;
    if (columns === undefined) return flat;
    return Array.from({ length: rows }, (_, i) => flat.subarray(i * columns, (i + 1) * columns));
  }

  // Theme: colours of the page, read where the figure stands ---------------------------------------------------------
  const channels = (colour) => (colour.match(/[\d.]+/g) ?? [255, 255, 255]).slice(0, 3).map(Number);

  function themeOf(el) {
    const { backgroundColor: paper, color: ink } = getComputedStyle(el);
    const [r, g, b] = channels(paper);
    return { paper, ink, dark: 0.3 * r + 0.6 * g + 0.1 * b < 128 };
  }

  function shaded(value, shades) {
    if (typeof value === "string") return shades[value] ?? value;
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
    if (Array.isArray(value)) return ["number", "boolean"].includes(typeof value[0]) ? value : value.map((v) => shaded(v, shades));
    const inside = (name) => ["insidetextfont", "pattern", "customdata"].includes(name); // on a bar, not on the page, or words
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, inside(name) ? part : shaded(part, shades)]));
  }

  // One figure ------------------------------------------------------------------------------------------------------
  const plain = (text) => text.replace(/<[^>]*>/g, "");

  function make(tag, className, parent, text = "") {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    parent.append(made);
    return made;
  }

  /*LEGEND*/

  /*SCREEN*/

  // In a low figure the title of a vertical axis lies above it (upright it would be longer than the axis), and the legend in the caption.
  function lowered(layout, height) {
    const axes = {}, annotations = [...(layout.annotations ?? [])];
    for (const [name, axis] of Object.entries(layout)) {
      if (name.startsWith("xaxis")) axes[name] = { ...axis, title: { ...axis.title, standoff: 2 }, tickfont: { size: 10, ...axis.tickfont } };
      if (!name.startsWith("yaxis") || !axis.title?.text) continue;
      const number = name.slice(5), font = { size: 10 };
      const domain = axis.domain && [...axis.domain];
      if (domain && domain[1] < 1) domain[1] -= NOTE / (height - 50); // room for the note below the panel above
      axes[name] = { ...axis, title: undefined, nticks: 4, ...(domain && { domain }) };
      annotations.push({ text: axis.title.text, showarrow: false, xref: `x${number} domain`, yref: `y${number} domain`, x: 0, y: 1,
        xanchor: "left", yanchor: "bottom", font });
    }
    return { axes: { ...axes, annotations }, margin: { l: Math.min(layout.margin?.l ?? 44, 60), b: layout.margin?.b ?? 34 } };
  }

  function composed(cell, theme) {
    const { data, layout } = theme.dark ? shaded(cell.figure, LOOK.dark) : cell.figure;
    const house = theme.dark ? shaded(LOOK.template, LOOK.dark) : LOOK.template;
    const width = cell.plot.clientWidth, narrow = width < NARROW, size = narrow ? 11 : 13;
    const titled = (axis) => ({ ...axis, title: { ...axis.title, font: { size } } });
    const { xaxis, yaxis } = house.layout;
    const template = { layout: { ...house.layout, xaxis: titled(xaxis), yaxis: titled(yaxis) } };
    const { screen } = cell;
    const low = cell.height < LOW && !first(cell.place) ? lowered(layout, cell.height) : null;
    const captioned = low || (first(cell.place) && !screen); // its names stand in the caption
    const above = captioned ? { legend: {}, top: 16 } : narrow ? legendAbove(data, layout, width) : { legend: {}, top: 14 };
    const steady = (trace) => { // what lies outside a selection stays as it is
      const marker = { opacity: trace.marker?.opacity ?? 1 };
      return trace.marker ? { ...trace, selected: { marker }, unselected: { marker } } : trace;
    };
    const look = {
      template, autosize: true, height: cell.height, title: undefined, width: undefined,
      paper_bgcolor: theme.paper, plot_bgcolor: theme.paper,
      margin: { l: 56, r: 16, b: 44, ...layout.margin, t: above.top, ...low?.margin, ...(screen && SIDES) },
      legend: { ...layout.legend, ...above.legend },
      showlegend: captioned || screen ? false : layout.showlegend,
      ...(screen && { dragmode: cell.asking ? "select" : false, selectdirection: "h" }),
      // A zoom is kept while the numbers change, unless the window of the figure itself moves.
      uirevision: String(layout.xaxis?.range ?? "") + String(layout.yaxis?.range ?? ""),
      font: { ...layout.font, size, color: theme.ink },
    };
    return { data: screen ? data.map(steady) : data, layout: { ...layout, ...low?.axes, ...look } };
  }

  const first = (place) => place.least > LOWEST; // a figure of the first screen

  // Width that a figure needs, so that none of its panels is narrower than the least.
  function roomFor({ data = [], layout = {} }) {
    const axes = Object.entries(layout).filter(([name]) => name.startsWith("xaxis"));
    const shares = axes.map(([, { domain = [0, 1] }]) => domain[1] - domain[0]), narrowest = Math.min(1, ...shares);
    const scaled = data.some(({ type, showscale }) => ["heatmap", "contour"].includes(type) && showscale !== false);
    return LEAST / narrowest + BESIDE + (scaled ? SCALE : 0);
  }

  const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false };

  function grid(el, places, options = {}) {
    el.classList.add("gpuschedlab-board");
    el.replaceChildren();
    el.dataset.drawn = 0;
    const cells = {}, due = new Set();
    let running = false, next = null; // what comes while figures are drawn is drawn after them
    // A record of two runs, what is looked at in it, and the mark of what was asked last, until that is answered.
    const state = { record: null, view: null, asked: "", asks: false, guessing: false, dots: [] };
    const screened = () => Object.values(cells).filter((cell) => cell.screen);

    async function save(cell, format) {
      const Plotly = await library, theme = themeOf(cell.box), { data, layout } = composed(cell, theme);
      const title = { text: cell.figure.layout.title?.text ?? "" };
      const whole = { data: data.map(asMarkers), layout: { ...layout, title, margin: { ...layout.margin, t: 60 } } };
      await Plotly.downloadImage(whole, {
        format, filename: cell.place.name, width: cell.plot.clientWidth, height: cell.height, scale: format === "png" ? 2 : 1,
      });
    }

    for (const place of places) {
      if (place.words) {
        cells[place.name] = { place, box: make("section", "gpuschedlab-words gpuschedlab-wide", el) };
        cells[place.name].box.dataset.words = place.name;
        continue;
      }
      const box = make("figure", `gpuschedlab-figure${place.wide ? " gpuschedlab-wide" : ""}${place.more ? " gpuschedlab-rare" : ""}${first(place) ? " gpuschedlab-first" : ""}`, el);
      const head = make("figcaption", "", box), words = make("span", "gpuschedlab-title", head);
      const cell = { place, box, height: place.height, title: make("b", "", words), more: make("span", "", words), asking: Boolean(options.ask) };
      cell.key = make("span", "gpuschedlab-key", head);
      const tools = make("span", "gpuschedlab-tools", head);
      for (const format of ["png", "svg"]) {
        const button = make("button", "", tools, format.toUpperCase());
        button.type = "button";
        button.title = `save this figure as ${format.toUpperCase()}`;
        button.onclick = () => save(cell, format);
      }
      cell.plot = make("div", "gpuschedlab-plot", box);
      cell.plot.style.height = `${place.height}px`;
      if (place.width) box.style.maxWidth = `${place.width}px`;
      cells[place.name] = cell;
    }

    // Figures that are watched together share the height of the page below the controls; in a single column they are lower.
    function heightOf(place) {
      if (!options.compact || place.more) return place.height;
      const columns = getComputedStyle(el).gridTemplateColumns.split(" ").length;
      if (columns === 1) return Math.round(0.75 * place.height);
      const figures = places.filter((each) => !each.words && !each.more && !cells[each.name].box.hidden), wide = figures.filter(({ name }) => cells[name].box.classList.contains("gpuschedlab-wide")).length;
      const rows = wide + Math.ceil((figures.length - wide) / columns);
      const page = document.fullscreenElement ? window.innerHeight : el.closest(".jp-WindowedPanel-outer, .jp-Notebook")?.clientHeight || window.innerHeight;
      const all = el.closest(".gpuschedlab-explorer");
      const heads = [...el.querySelectorAll(".gpuschedlab-figure:not(.gpuschedlab-rare) figcaption")].map((head) => head.offsetHeight);
      const caption = Math.max(...heads, first(place) ? 0 : CAPTION) + 4;
      const words = [...el.querySelectorAll(".gpuschedlab-words")].reduce((sum, each) => sum + each.offsetHeight + 4, 0);
      const others = words + (all ? all.offsetHeight - el.offsetHeight : 0); // controls above, and what stands below
      const most = first(place) && document.fullscreenElement ? FULL : place.height;
      return Math.min(most, Math.max(place.least, Math.floor((page - others - (first(place) ? 2 : 12)) / rows) - caption));
    }

    // Names of the traces with their colours and patterns, where the legend itself has no room.
    function keyed(cell, data) {
      const keys = [], named = cell.plot._fullData.filter((trace) => trace.name && trace.showlegend);
      const shown = cell.figure.layout.showlegend;
      if (!cell.screen && (cell.height < LOW || first(cell.place)) && shown !== false && (named.length > 1 || shown === true))
        for (const trace of named) {
          const item = document.createElement("span");
          make("i", "", item).style.background = swatch(trace.visible ? trace : { ...trace, ...data[trace.index] }); // plotly gives what is empty no look
          item.append(plain(trace.name));
          keys.push(item);
        }
      cell.key.replaceChildren(...keys);
    }

    async function draw(Plotly, cell) {
      if (!cell.screen) { // a figure that is too narrow in its column is as wide as the grid
        const column = el.classList.contains("gpuschedlab-two") ? (el.clientWidth - GAP) / 2 : el.clientWidth;
        cell.box.classList.toggle("gpuschedlab-wide", cell.place.wide || (el.clientWidth <= ROOMY && column < roomFor(cell.figure)));
      }
      cell.height = heightOf(cell.place);
      cell.plot.style.height = `${cell.height}px`;
      if (cell.screen)
        cell.figure = SCREEN[cell.place.name](state, cell.plot.clientWidth - SIDES.l - SIDES.r, cell.height - SIDES.b - 14);
      const { data, layout } = composed(cell, themeOf(cell.box));
      const text = cell.figure.layout.title?.text ?? "", [first, ...rest] = text.split("<br>");
      cell.box.classList.toggle("gpuschedlab-wraps", !cell.screen);
      cell.title.textContent = plain(first);
      cell.more.textContent = plain(rest.join(" "));
      cell.box.setAttribute("aria-label", plain(text));
      choices(cell);
      await Plotly.react(cell.plot, data, layout, CONFIG);
      keyed(cell, data);
      if (cell.place.name === "change" && cell.screen) dot(cell.plot, cell.plot.querySelectorAll(".scatterlayer .trace"), data);
      if (cell.heard) return;
      cell.heard = true;
      if (cell.screen) answering(Plotly, cell);
      else if (options.clicked)
        cell.plot.on("plotly_click", ({ points: [p] }) => options.clicked(cell.place.name, p.curveNumber, p.pointNumber));
    }

    // Something else is looked at: it is drawn at once, and the words for it are asked for.
    function look(change) {
      if (!Object.keys(change).length) return;
      state.view = { ...state.view, ...change };
      if (!options.ask) state.record.lit = state.record.stories?.[state.view.job] ?? null; // the page knows some of them itself
      state.asked = String(Math.random());
      options.ask?.("view", { ...state.view, mark: state.asked });
      screened().forEach((cell) => due.add(cell));
      work();
    }
    el.addEventListener("click", ({ target }) => {
      const what = target.closest("[data-look]")?.dataset.look;
      if (what) look(what === "all" ? { time: null, size: null } : { job: null });
    });

    function guess() {
      const all = el.closest(".gpuschedlab-explorer"), box = make("div", "gpuschedlab-guess", el);
      Object.assign(state, { asks: false, guessing: true });
      all.classList.add("gpuschedlab-guessing");
      el.children[0].after(box);
      guessed(box, state.record, (score) => {
        box.remove();
        all.classList.remove("gpuschedlab-guessing");
        state.guessing = false;
        const last = all.querySelector(".gpuschedlab-said p:last-child");
        if (score && last) make("span", "gpuschedlab-score", last, ` ${score}`);
        options.ask?.("guessed", score);
        screened().forEach((cell) => due.add(cell));
        work();
      });
    }

    // A figure in which one can click, drag, and move by keys.
    function answering(Plotly, { plot, place }) {
      if (place.name === "change") plot.on("plotly_click", ({ points: [p] }) => look({ job: state.dots[p.curveNumber][p.pointNumber] }));
      plot.setAttribute("tabindex", 0);
      plot.setAttribute("role", "application");
      plot.setAttribute("aria-label", `${place.name}: arrow keys step through it, Escape shows all`);
      plot.setAttribute("data-lm-suppress-shortcuts", "true");
      plot.on("plotly_selected", (event) => {
        const span = event?.range?.x;
        if (!span) return;
        Plotly.relayout(plot, { selections: [] });
        look(dragged(state, place.name, [Math.min(...span), Math.max(...span)]));
      });
      plot.addEventListener("keydown", (event) => {
        if (!/^(Arrow|Escape)/.test(event.key) || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        look(moved(state, place.name, event.key));
      });
    }

    // Buttons in a caption, one of them pressed; and a hint on its words.
    function choices(cell) {
      const { choice, hint } = cell.figure.layout.meta ?? {};
      if (hint) Object.assign(cell.more.dataset, { hint });
      if (hint) cell.more.tabIndex = 0;
      if (!choice || state.guessing) return;
      cell.choice ??= choice.of.map(([value, text]) => {
        const button = make("button", "", cell.buttons ??= make("span", "gpuschedlab-choice", cell.more.parentNode), text);
        button.type = "button";
        button.onclick = () => look({ by: value, size: null });
        return [value, button];
      });
      cell.choice.forEach(([value, button]) => button.setAttribute("aria-pressed", value === choice.now));
    }

    const pause = () => window.scheduler?.yield?.() ?? new Promise((done) => setTimeout(done)); // for keys and clicks
    // What has no width yet is drawn when it gets one.
    async function work() {
      if (running) return;
      running = true;
      let begun = false;
      try {
        const Plotly = await library;
        if (state.asks && el.closest(".gpuschedlab-explorer")) guess();
        for (const cell of Object.values(cells)) {
          if (!due.has(cell) || !cell.figure) continue;
          if (cell.place.words) {
            due.delete(cell);
            const html = SCREEN[cell.place.name](state);
            if (cell.html !== html) cell.box.innerHTML = cell.html = html;
            continue;
          }
          if (!cell.plot.clientWidth) {
            if (getComputedStyle(cell.box).display === "none") due.delete(cell); // until it is seen
            continue;
          }
          due.delete(cell);
          if (begun) await pause();
          begun = true;
          await draw(Plotly, cell);
        }
        refit();
        if (!due.size) {
          el.dataset.drawn = Number(el.dataset.drawn) + 1;
          if (!next) options.drawn?.();
        }
      } catch (error) {
        options.failed ? options.failed(error) : make("pre", "gpuschedlab-failed", el.parentNode, String(error));
      } finally {
        running = false;
      }
      if (next) return show(next);
      if ([...due].some((cell) => cell.figure && cell.plot?.clientWidth)) work();
    }

    // Captions and controls are as high as what they hold, which is known once it is there: figures take what is left.
    let fits = 0;
    const misfits = () => Object.values(cells).filter((cell) => cell.figure && cell.plot?.clientWidth && heightOf(cell.place) !== cell.height);
    function refit() {
      if (!options.compact || fits >= FITS) return;
      const wrong = misfits();
      if (wrong.length) fits += 1;
      wrong.forEach((cell) => due.add(cell));
    }
    function watchControls() {
      const controls = el.closest(".gpuschedlab-explorer")?.querySelector(".gpuschedlab-controls");
      if (controls && options.compact) size.observe(controls); // once more changes nothing
    }

    const all = () => { for (const cell of Object.values(cells)) if (cell.figure) due.add(cell); work(); };
    let width = 0;
    const size = new ResizeObserver((entries) => {
      const now = el.clientWidth;
      if (!now) return;
      if (now !== width) {
        width = now;
        return all();
      }
      if (entries.some((entry) => entry.target !== el)) misfits().forEach((cell) => due.add(cell));
      if (due.size) work(); // a height changed; or it was taken off the page, where nothing has a width, and is back
    });
    size.observe(el);
    window.addEventListener("resize", all);
    // A page says that its theme changes before its style sheets are there.
    const shade = new MutationObserver(() => { all(); for (const wait of [300, 1000, 3000]) setTimeout(all, wait); });
    shade.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
    function show(figures) {
      next = { ...next, ...figures };
      if (running) return;
      figures = next;
      next = null;
      fits = 0;
      watchControls();
      for (const [name, figure] of Object.entries(figures)) {
        if (figure.record) {
          state.record = whole(decoded(figure.record));
          const { view, mark, guess: asks } = state.record;
          if (!state.asked || mark === state.asked) Object.assign(state, { view, asked: "" });
          for (const name of Object.keys(SCREEN)) if (cells[name]) due.add(Object.assign(cells[name], { screen: true, figure: cells[name].figure ?? { layout: {} } }));
          state.asks = Boolean(asks && !state.guessing && options.ask); // once it is on the page
          const { lit } = state.record; // its waits are logged once the page has drawn what is known at once
          if (lit && !lit.logged) setTimeout(() => options.ask?.("story", lit.row), 250);
          continue;
        }
        if (!Object.keys(figure).length) continue; // not sent yet
        const hidden = Boolean(figure.layout?.meta?.hidden);
        Object.assign(cells[name], { figure: hidden ? null : decoded(figure) });
        cells[name].box.hidden = hidden; // its place is left out
        if (!hidden) due.add(cells[name]);
      }
      work();
    }
    return (el.gpuschedlab = {
      show,
      redraw: all,
      close() { size.disconnect(); shade.disconnect(); window.removeEventListener("resize", all); },
    });
  }

  // Figures that an output holds itself: [{id, board, pack}] ----------------------------------------------------------
  const boards = new Set();
  const live = () => document.getElementById("jupyter-config-data") !== null; // a page on which widgets may come

  async function still({ id, board, pack }) {
    const el = document.getElementById(id);
    if (!el || boards.has(board)) return;
    if (board && live()) {
      // The widget of the same figures is about to be drawn; should it not come (no kernel), these stand in.
      await new Promise((done) => setTimeout(done, 15000));
      if (boards.has(board) || !el.isConnected) return;
    }
    const { places, figures, note, states } = JSON.parse(await unpacked(bytesOf(pack)));
    el.hidden = false;
    // Pictures stand in the figures' place until all are drawn, so that nothing jumps; those of a board stand before it.
    const drawn = () => {
      const pictures = document.querySelectorAll(`#${id} .gpuschedlab-pictures, [data-pictures="${board || id}"]`);
      if (note && !el.dataset.noted) el.insertAdjacentHTML("afterbegin", note);
      el.dataset.noted = true;
      pictures.forEach((each) => each.remove());
    };
    const drawnBoard = grid(el.querySelector(".gpuschedlab-figures"), places, { drawn });
    if (!states) return drawnBoard.show(figures);
    el.dataset.noted = true;
    window.gpuschedlabStates(el, drawnBoard, states);
  }

  // Hints: what `data-hint` of an element says, while the mouse or the keyboard is on it ---------------------------
  function hint({ target, type }) {
    const on = target.closest?.(".gpuschedlab-explorer [data-hint], .gpuschedlab-frame [data-hint]");
    let tip = document.querySelector(".gpuschedlab-tip");
    if (!on || type === "keydown") return tip?.remove();
    const host = document.fullscreenElement ?? document.body;
    if (tip?.parentNode !== host) {
      tip?.remove();
      tip = make("div", "gpuschedlab-tip", host);
      tip.role = "tooltip";
    }
    tip.textContent = on.dataset.hint;
    const box = on.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(innerWidth - tip.offsetWidth - 6, box.left))}px`;
    tip.style.top = `${box.top > tip.offsetHeight + 8 ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
  }
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, hint);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hint(event));

  // A widget takes the place of its static twin; but not where no kernel will answer it, and the twin does.
  function replace(board) {
    if (!live() && document.querySelector(`[data-board="${board}"][data-states]`)) return false;
    boards.add(board);
    for (const el of document.querySelectorAll(`[data-board="${board}"], [data-pictures="${board}"]`)) el.remove();
    return true;
  }

  window.gpuschedlabFigures = { give, use, grid, library, replace, themeOf, given: () => given, decoded, words: { span, changed } };
  const queue = window.gpuschedlabQueue ?? [];
  window.gpuschedlabQueue = { push: still };
  queue.forEach(still);
})();
