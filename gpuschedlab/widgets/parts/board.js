export default {
  render({ model, el }) {
    const page = window.gpuschedlabFigures, names = model.get("places").map((place) => place.name);
    page.replace(model.get("identity"));
    const frame = document.createElement("div"), inner = document.createElement("div");
    frame.className = "gpuschedlab-frame";
    inner.className = "gpuschedlab-two";
    const tools = document.createElement("div");
    tools.className = "gpuschedlab-view";
    const tool = (text, title, answer) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: text, title });
      button.onclick = () => answer(el.closest(".gpuschedlab-explorer"));
      tools.append(button);
    };
    tool("fold", "show or hide the controls", (all) => {
      all.classList.toggle("gpuschedlab-folded");
      window.dispatchEvent(new Event("resize")); // figures take the height that is left
    });
    tool("full screen", "show this explorer alone", (all) => document.fullscreenElement ? document.exitFullscreen() : all.requestFullscreen());
    frame.append(inner);
    el.append(frame);
    let shown = 0; // number of the update that is shown, or about to be
    const grid = page.grid(inner, model.get("places"), {
      compact: true,
      clicked: (figure, trace, point) => model.send({ kind: "clicked", figure, trace, point }),
      drawn: () => model.send({ kind: "drawn", number: shown }),
    });
    // Names for screen readers, where the widgets give none: a slider's is the text beside it.
    const PLAY = ["play or pause", "stop", "repeat"];
    const named = () => {
      const all = el.closest(".gpuschedlab-explorer"), controls = all?.querySelector(".gpuschedlab-controls");
      if (controls && !tools.parentNode) controls.append(tools); // they stay where the controls stay when the page is scrolled
      for (const handle of all?.querySelectorAll(".noUi-handle:not([aria-label])") ?? [])
        handle.setAttribute("aria-label", handle.closest(".widget-slider")?.querySelector(".widget-label")?.textContent || "value");
      for (const play of all?.querySelectorAll(".widget-play") ?? [])
        play.querySelectorAll("button:not([aria-label])").forEach((button, i) => button.setAttribute("aria-label", PLAY[i] ?? "play"));
    };
    const figure = (name) => model.get(`figure_${names.indexOf(name)}`);
    const show = (which) => {
      shown = model.get("number");
      model.send({ kind: "got", number: shown });
      grid.show(Object.fromEntries(which.map((each) => [each, figure(each)])));
      setTimeout(named);
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

    // plotly is on the page already where an output brought it; otherwise the kernel is asked for it.
    const receive = (message, buffers) => {
      if (message.kind === "library" && !page.given()) page.give(buffers[0]);
      if (message.kind === "pong") answered();
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
    const ask = () => {
      if (page.given()) return;
      model.send({ kind: "library" });
      timer = setTimeout(ask, 10000);
    };
    timer = setTimeout(ask, 300);

    // A kernel that does not answer: its controls are grey, and a line says so. One that is gone never answers again.
    const PING = 4000, SILENT = 20000, here = crypto.randomUUID?.() ?? String(Math.random());
    let pongs = 0;
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
    const answered = () => {
      pongs += 1;
      heard = Date.now();
      silent("");
    };
    const lost = () => {
      clearInterval(pulse);
      gone();
    };
    const pulse = setInterval(() => {
      named(); // controls may have come since
      if (document.hidden) heard = Date.now();
      else if (Date.now() - heard > SILENT) silent("The kernel does not answer. It is busy with other work, or gone: then run the cell again.");
      try {
        model.send({ kind: "ping", page: here, heard: pongs });
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
      clearInterval(pulse);
      tools.remove();
      grid.close();
      [...listeners, ["comm:close", lost], ["comm_live_update", gone]].forEach(([event, listener]) => model.off(event, listener));
      model.off("msg:custom", receive);
      document.removeEventListener("focusin", keep);
    };
  },
};
