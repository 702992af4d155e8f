// Plays a decision step by step, from what the page itself holds: the line that acts, what it reads and decides, a table, a figure.
(() => {
  if (window.gpuschedlabSteps) return;
  const { make, unpacked, keys } = window.gpuschedlabPage;
  const PACE = 1200; // milliseconds of a step that plays

  async function play({ id, what, listing, places, pack, at }) {
    const el = document.getElementById(id);
    if (!el) return;
    const cases = await unpacked(pack), state = { at, step: 0 };
    let timer = null, grid = null;
    document.querySelectorAll(`[data-pictures="${id}"]`).forEach((each) => each.remove());
    el.hidden = false;
    el.replaceChildren();

    const button = (parent, text, name, answer) => {
      const made = make("button", parent, { type: "button", "aria-label": name, title: name }, text);
      made.onclick = answer;
      return made;
    };
    const range = (parent, name, max, answer) => {
      const made = make("input", make("div", parent, { class: "gpuschedlab-player-track" }), { type: "range", min: 0, max, step: 1, "aria-label": name });
      made.oninput = () => answer(Number(made.value));
      return made;
    };
    const row = (name) => make("div", el, { class: "gpuschedlab-player-row gpuschedlab-steps-row", role: "group", "aria-label": name });
    const top = row(what), choice = make("span", top, {}, `${what}:`);
    const which = range(top, what, cases.length - 1, (to) => choose(to)), name = make("span", top, { class: "gpuschedlab-player-hour" });
    top.hidden = cases.length < 2;
    const steps = row("steps");
    const back = button(steps, "Back", "step back", () => go(state.step - 1));
    const forth = button(steps, "Step", "next step", () => go(state.step + 1));
    const run = button(steps, "Play", "play the steps", () => (timer ? stop() : start()));
    const slider = range(steps, "step", 0, (to) => go(to)), count = make("span", steps, { class: "gpuschedlab-player-hour" });
    const two = make("div", el, { class: "gpuschedlab-steps" });
    const lines = make("ol", two, { class: "gpuschedlab-steps-listing", "aria-label": "algorithm" });
    const items = listing.map((text) => make("li", lines, { style: `padding-left: ${(text.length - text.trimStart().length) / 2}em` }, text.trim()));
    const right = make("div", two), words = make("p", right, { class: "gpuschedlab-steps-words", "aria-live": "polite" });
    const room = make("div", right, { class: "gpuschedlab-steps-table", tabindex: 0, "aria-label": "table" });
    const figures = make("div", make("div", el, { class: "gpuschedlab-frame" }), { class: "gpuschedlab-figures" });

    function table(head, rows, lit) {
      const made = make("table", room), above = make("tr", make("thead", made)), body = make("tbody", made);
      head.forEach((text) => make("th", above, { scope: "col" }, text));
      const shown = rows.map((cells, i) => {
        const each = make("tr", body, lit.includes(i) ? { "aria-current": "true" } : {});
        cells.forEach((text) => make("td", each, {}, text));
        return each;
      });
      room.replaceChildren(made);
      const first = shown[lit[0]];
      if (first) room.scrollTop = Math.max(0, first.offsetTop - above.offsetHeight - 24);
    }

    function show() {
      const { at, step } = state, { head, steps: all } = cases[at], now = all[step];
      which.value = at;
      which.setAttribute("aria-valuetext", cases[at].name);
      name.textContent = cases[at].name;
      slider.max = all.length - 1;
      slider.value = step;
      count.textContent = `${step + 1} of ${all.length}`;
      back.disabled = step === 0;
      forth.disabled = step === all.length - 1;
      items.forEach((each, i) => (i === now.line - 1 ? each.setAttribute("aria-current", "step") : each.removeAttribute("aria-current")));
      make("b", words, {}, ` ${now.decided}`);
      words.replaceChildren(now.read, words.lastChild);
      table(head, now.rows, now.lit);
      if (places.length) {
        grid ??= window.gpuschedlabFigures.grid(figures, places);
        grid.show(now.figures);
      }
      el.dataset.shown = `${at} ${step}`;
    }

    const go = (to) => { state.step = Math.max(0, Math.min(cases[state.at].steps.length - 1, to)); show(); };
    const choose = (to) => { stop(); state.at = Math.max(0, Math.min(cases.length - 1, to)); go(state.step); };
    const start = () => {
      if (forth.disabled) go(0);
      run.textContent = "Pause";
      timer = setInterval(() => { go(state.step + 1); if (forth.disabled || !el.isConnected) stop(); }, PACE);
    };
    const stop = () => { clearInterval(timer); timer = null; run.textContent = "Play"; };
    keys(el, ({ key, target }) => {
      const side = { ArrowLeft: -1, ArrowRight: 1 }[key], other = { PageUp: -1, PageDown: 1 }[key];
      if (side && target !== which) go(state.step + side);
      else if (side || other) choose(state.at + (side ?? other));
      else if (key === "Home" || key === "End") go(key === "Home" ? 0 : Infinity);
      else return false;
      return true;
    });
    show();
  }

  const queue = window.gpuschedlabStepsQueue ?? [];
  window.gpuschedlabSteps = true;
  window.gpuschedlabStepsQueue = { push: play };
  queue.forEach(play);
})();
