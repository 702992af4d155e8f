// Plays a recorded contest: any hour and any stage of it, from what the page itself holds. Draws with gpuschedlabFigures; a kernel
// is needed for one button alone.
(() => {
  if (window.gpuschedlabPlayers) return;
  const players = (window.gpuschedlabPlayers = {});
  const { make, unpacked, keys } = window.gpuschedlabPage;

  function play({ id, hours, stages, packs, at, stage, about, head }) {
    const el = document.getElementById(id);
    if (!el) return;
    document.querySelectorAll(`[data-pictures="${id}"]`).forEach((each) => each.remove());
    const state = { at, stage }, grids = {}, drawings = {};
    let hears = () => {};
    el.hidden = false;
    el.replaceChildren();

    make("div", el, { class: "gpuschedlab-said" }).innerHTML = head;
    const top = make("div", el, { class: "gpuschedlab-player-row" });
    const button = (parent, text, name, answer) => {
      const made = make("button", parent, { type: "button", "aria-label": name, title: name }, text);
      made.onclick = answer;
      return made;
    };
    const back = button(top, "\u25C0", "hour before", () => go(state.at - 1));
    const track = make("div", top, { class: "gpuschedlab-player-track" });
    const slider = make("input", track, { type: "range", min: 0, max: hours.length - 1, step: 1, "aria-label": "hour" });
    const forth = button(top, "\u25B6", "hour after", () => go(state.at + 1));
    const label = make("span", top, { class: "gpuschedlab-player-hour" });
    const list = make("select", top, { "aria-label": "decisions: choose one to go to its hour" });
    hours.forEach((hour, i) => make("option", list, { value: i }, hour.decision));
    const live = button(top, "Go live", "go live from this hour: needs a kernel", () => hears(state.at));
    const needs = make("span", top, { class: "gpuschedlab-player-needs" }, "needs a kernel");
    live.disabled = true;
    hours.forEach((hour, i) => {
      if (!hour.switched) return;
      const mark = button(track, "\u25B2", `switch at ${hour.name}`, () => go(i));
      mark.className = "gpuschedlab-player-mark";
      mark.style.left = `calc(8px + (100% - 16px) * ${i / Math.max(1, hours.length - 1)})`;
    });
    const steps = make("div", el, { class: "gpuschedlab-player-row", role: "group", "aria-label": "stages of a decision" });
    const buttons = stages.map((each, i) => button(steps, `${i + 1} ${each.name}`, `${i + 1} ${each.name}: ${each.asks}`, () => choose(i)));
    const words = make("p", el, { class: "gpuschedlab-player-words", "aria-live": "polite" });
    const figures = stages.map((each) => make("div", el, { class: "gpuschedlab-frame" }));

    const race = make("p", el, { class: "gpuschedlab-player-foot" });

    async function show() {
      const { at, stage } = state, hour = hours[at];
      slider.value = at;
      slider.setAttribute("aria-valuetext", `${hour.name}: ${hour.decision}`);
      list.value = at;
      label.textContent = hour.name;
      back.disabled = at === 0;
      forth.disabled = at === hours.length - 1;
      buttons.forEach((each, i) => each.setAttribute("aria-pressed", i === stage));
      make("b", words, {}, `${stages[stage].asks} `);
      words.replaceChildren(words.lastChild, hour.sentences[stage]);
      race.textContent = `${hour.race} ${about}`;
      figures.forEach((each, i) => { each.hidden = i !== stage; });
      el.dataset.at = at;
      el.dataset.stage = stage;
      drawings[stage] ??= unpacked(packs[stage]);
      const found = (await drawings[stage])[at];
      if (state.at !== at || state.stage !== stage) return;
      if (!grids[stage]) {
        const inner = make("div", figures[stage], { class: `gpuschedlab-figures${stages[stage].places.length > 1 ? " gpuschedlab-two" : ""}` });
        const drawn = () => { el.dataset.drawn = `${inner.dataset.at} ${stage}`; };
        grids[stage] = { inner, grid: window.gpuschedlabFigures.grid(inner, stages[stage].places, { drawn }) };
      }
      grids[stage].inner.dataset.at = at;
      grids[stage].grid.show(found);
    }

    const go = (to) => { state.at = Math.max(0, Math.min(hours.length - 1, to)); show(); };
    const choose = (to) => { state.stage = to; show(); };
    slider.oninput = () => go(Number(slider.value));
    list.onchange = () => go(Number(list.value));
    // Arrows move the hour and digits choose the stage, wherever the focus is; to JupyterLab they would be the notebook's shortcuts.
    keys(el, ({ key, target }) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[key], number = Number(key);
      if (target === list) return false;
      if (step) go(state.at + step);
      else if (number >= 1 && number <= stages.length) choose(number - 1);
      else return false;
      return true;
    });
    players[id] = {
      // A kernel that answers: `heard` is called with the hour that is shown; null: there is none any more.
      listen(heard) {
        hears = heard ?? (() => {});
        live.disabled = !heard;
        needs.hidden = Boolean(heard);
      },
    };
    show();
  }

  const queue = window.gpuschedlabPlayerQueue ?? [];
  window.gpuschedlabPlayerQueue = { push: play };
  queue.forEach(play);
})();
