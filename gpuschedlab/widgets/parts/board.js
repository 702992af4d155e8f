export default {
  render({ model, el }) {
    const page = window.gpuschedlabFigures, names = model.get("places").map((place) => place.name);
    if (!page.replace(model.get("identity"))) {
      setTimeout(() => { const all = el.closest(".gpuschedlab-explorer"); if (all) all.hidden = all.style.display = "none"; });
      return;
    }
    const frame = document.createElement("div"), inner = document.createElement("div");
    frame.className = "gpuschedlab-frame";
    inner.className = "gpuschedlab-two";
    const tools = document.createElement("div");
    tools.className = "gpuschedlab-view";
    const tool = (text, title, answer) => {
      const button = document.createElement("button");
      button.className = `gpuschedlab-${text.replace(" ", "-")}-tool`;
      Object.assign(button, { type: "button", textContent: text, title });
      button.onclick = () => answer(el.closest(".gpuschedlab-explorer"), button);
      tools.append(button);
      return button;
    };
    const ask = (what, value) => model.send({ kind: "ask", what, value });
    const linked = Boolean(model.get("link")); // whether each state has an address
    const config = document.getElementById("jupyter-config-data")?.textContent ?? "{}";
    const lab = Boolean(JSON.parse(config).appName); // JupyterLab's address is its own; Voila has no name, and other pages no configuration
    if (linked)
      tool("copy link", lab ? "copy the code that shows this again" : "copy the address, which holds all settings", async (all, button) => {
        const words = lab ? `explorer.at("${model.get("link")}")` : location.href.split("#")[0] + "#" + model.get("link");
        const done = await navigator.clipboard?.writeText(words).then(() => "copied", () => "");
        button.textContent = done || (lab ? words : "in the address");
        setTimeout(() => (button.textContent = "copy link"), 1500);
      });
    tool("fold", "show or hide the controls", (all) => {
      all.classList.toggle("gpuschedlab-folded");
      window.dispatchEvent(new Event("resize")); // figures take the height that is left
    });
    const full = tool("full screen", "show this explorer alone", (all) => document.fullscreenElement ? document.exitFullscreen() : all.requestFullscreen());
    full.setAttribute("aria-label", "full screen");
    full.innerHTML = '<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><path d="M1 5V1h4M9 1h4v4M13 9v4H9M5 13H1V9" fill="none" stroke="currentColor" stroke-width="1.6"/></svg>';
    tool("more", "rare controls and other figures", () => ask("more", null));
    frame.append(inner);
    el.append(frame);
    frame.addEventListener("click", ({ target }) => {
      const asking = target.closest("[data-ask]");
      if (asking) ask(asking.dataset.ask, asking.dataset.value ?? null);
    });
    // The address of a page of its own holds the state of its first explorer.
    if (linked && !lab) window.gpuschedlabAddressed ??= model.get("identity");
    const addressed = window.gpuschedlabAddressed === model.get("identity");
    const readdress = () => { if (model.get("link")) history.replaceState(null, "", `#${model.get("link")}`); };
    const follow = () => { if (location.hash.length > 1) ask("link", decodeURIComponent(location.hash.slice(1))); };
    if (addressed) {
      follow();
      model.on("change:link", readdress);
      window.addEventListener("hashchange", follow);
    }
    let shown = 0, drawn = 0, late = 0; // numbers of the updates that are about to be shown, and that are drawn
    const old = document.createElement("div");
    old.className = "gpuschedlab-stale";
    old.hidden = true;
    frame.before(old);
    const stale = (words = "") => {
      clearTimeout(late);
      old.innerHTML = words;
      old.hidden = !words;
    };
    const watch = () => {
      clearTimeout(late);
      late = setTimeout(() => {
        if (drawn < model.get("number"))
          stale(`<b>These figures are not current</b> (figures: update ${drawn}; table: update ${model.get("number")}): they are being drawn.`);
      }, 2000);
    };
    const grid = page.grid(inner, model.get("places"), {
      compact: true,
      ask,
      clicked: (figure, trace, point) => ask("clicked", [figure, trace, point]),
      drawn: () => {
        drawn = shown;
        if (drawn === model.get("number")) stale();
        named();
        shade();
      },
    });
    // Names for screen readers, where the widgets give none: a slider's is the text beside it.
    const PLAY = ["play or pause", "stop", "repeat"];
    const named = () => {
      const all = el.closest(".gpuschedlab-explorer"), controls = all?.querySelector(".gpuschedlab-controls");
      if (controls && !tools.parentNode) controls.querySelector(".gpuschedlab-strip").append(tools); // they stay where the controls stay when the page is scrolled
      for (const handle of all?.querySelectorAll(".noUi-handle:not([aria-label])") ?? [])
        handle.setAttribute("aria-label", handle.closest(".widget-slider")?.querySelector(".widget-label")?.textContent || "value");
      for (const table of all?.querySelectorAll(".gpuschedlab-main > .widget-html > .widget-html-content") ?? [])
        table.tabIndex = table.scrollWidth > table.clientWidth ? 0 : -1; // keys scroll it
      for (const play of all?.querySelectorAll(".widget-play") ?? [])
        play.querySelectorAll("button:not([aria-label])").forEach((button, i) => button.setAttribute("aria-label", PLAY[i] ?? "play"));
    };
    const shade = () => {
      const all = el.closest(".gpuschedlab-explorer");
      all?.classList.toggle("gpuschedlab-dark", page.themeOf(el.querySelector(".gpuschedlab-figure")).dark);
      const opened = all?.classList.contains("gpuschedlab-more");
      Object.assign(tools.lastChild, { textContent: opened ? "less" : "more", ariaExpanded: opened });
    };
    const figure = (name) => model.get(`figure_${names.indexOf(name)}`);
    const show = (which) => {
      shown = model.get("number");
      watch();
      grid.show(Object.fromEntries(which.map((each) => [each, figure(each)])));
    };

    // All figures that one message brings are drawn together.
    const changed = new Set();
    const listeners = names.map((name, i) => [`change:figure_${i}`, () => {
      if (!changed.size)
        queueMicrotask(() => {
          show([...changed]);
          changed.clear();
        });
      changed.add(name);
    }]);
    listeners.push(["change:number", () => { if (!changed.size) queueMicrotask(() => changed.size || show([])); }]);
    listeners.forEach(([event, listener]) => model.on(event, listener));
    show(names);
    setTimeout(named); // once it is on the page

    // plotly is on the page already where an output brought it; otherwise the kernel is asked for it.
    const receive = (message, buffers) => {
      if (message.kind === "library" && !page.given()) page.give(buffers[0]);
      if (message.kind === "pong") answered(message.number);
      if (message.kind === "download") {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob(buffers));
        link.download = message.name;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      }
    };
    model.on("msg:custom", receive);
    let timer = 0;
    const want = () => {
      if (page.given()) return;
      model.send({ kind: "library" });
      timer = setTimeout(want, 10000);
    };
    timer = setTimeout(want, 300);

    // A kernel that does not answer: its controls are grey, and a line says so. One that is gone never answers again.
    const PING = 2000, SILENT = 20000, PATIENCE = 5000, here = crypto.randomUUID?.() ?? String(Math.random());
    let pings = 0, pongs = 0, missed = 0; // questions, answers, and those in turn that knew of an update which never came
    const silence = document.createElement("div");
    silence.className = "gpuschedlab-silence";
    silence.hidden = true;
    frame.before(silence);
    const silent = (words) => {
      silence.textContent = words;
      silence.hidden = !words;
      el.closest(".gpuschedlab-explorer")?.classList.toggle("gpuschedlab-silent", Boolean(words));
    };
    let heard = Date.now();
    const ping = () => {
      pings += 1;
      model.send({ kind: "ping", page: here, heard: pongs });
    };
    // While the kernel is busy a slider's last move is held back, a click is not. After one answer the move is
    // sent; a second one follows the move's.
    const answer = () => new Promise((done) => {
      ping();
      const mine = pings, until = Date.now() + PATIENCE, look = () => (pongs >= mine || Date.now() > until ? done() : setTimeout(look, 5));
      look();
    });
    let passed = null;
    const wait = async (event) => {
      const button = event.target.closest?.(".widget-button");
      if (!button || button === passed || !el.closest(".gpuschedlab-explorer")?.contains(button)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      await answer().then(answer).catch(() => null); // nobody answers
      passed = button;
      button.click();
      passed = null;
    };
    document.addEventListener("click", wait, true);
    const answered = (number) => {
      pongs += 1;
      missed = number > model.get("number") ? missed + 1 : 0;
      if (missed > 1) model.send({ kind: "lost" });
      heard = Date.now();
      silent("");
    };
    const lost = () => {
      clearInterval(pulse);
      gone();
    };
    const pulse = setInterval(() => {
      named(); // controls may have come since
      shade();
      if (document.hidden) heard = Date.now();
      else if (Date.now() - heard > SILENT) silent("The kernel does not answer. It is busy with other work, or gone: then run the cell again.");
      try {
        ping();
      } catch {
        lost();
      }
    }, PING);
    model.on("comm:close", lost);
    const gone = () => silent("The kernel of this explorer is gone: run its cell again."); // an answer takes it back
    model.on("comm_live_update", gone);

    // Letters and arrows choose and move here; to JupyterLab they would be the notebook's shortcuts, too.
    const keep = ({ target }) => {
      if (target.closest(".gpuschedlab-explorer") && target.matches("select, .noUi-handle"))
        target.setAttribute("data-lm-suppress-shortcuts", "true");
    };
    document.addEventListener("focusin", keep);
    return () => {
      clearTimeout(timer);
      clearTimeout(late);
      clearInterval(pulse);
      tools.remove();
      model.off("change:link", readdress);
      window.removeEventListener("hashchange", follow);
      grid.close();
      [...listeners, ["comm:close", lost], ["comm_live_update", gone]].forEach(([event, listener]) => model.off(event, listener));
      model.off("msg:custom", receive);
      document.removeEventListener("focusin", keep);
      document.removeEventListener("click", wait, true);
    };
  },
};
