// States that a page holds itself: their controls, native ones, and the note, figures and table of the combination that they say.
window.gpuschedlabStates ??= (el, board, { controls, states, figures, first }) => {
  const make = (tag, className, parent, text = "") => {
    const made = document.createElement(tag);
    Object.assign(made, { className, textContent: text });
    parent.append(made);
    return made;
  };
    const frame = el.querySelector(".gpuschedlab-frame"), note = make("div", "gpuschedlab-note", el), row = make("div", "gpuschedlab-states", el), below = make("div", "gpuschedlab-note", el);
  note.setAttribute("aria-live", "polite");
  frame.before(note, row);
  const sizes = controls.map(({ texts }) => texts.length), at = sizes.map((_, k) => Math.floor(first / sizes.slice(k + 1).reduce((a, b) => a * b, 1)) % sizes[k]);
  const show = () => {
    const place = at.reduce((sum, i, k) => sum * sizes[k] + i, 0), [words, drawn, table] = states[place];
    note.innerHTML = words;
    below.innerHTML = table;
    el.classList.toggle("gpuschedlab-dark", window.gpuschedlabFigures.themeOf(el.querySelector(".gpuschedlab-figure")).dark);
    board.show(Object.fromEntries(Object.entries(drawn).map(([name, number]) => [name, figures[number]])));
    el.dataset.state = place;
  };
  controls.forEach(({ name, texts }, k) => {
    const label = make("label", "", row, `${name} `);
    if (texts.some((text) => Number.isNaN(Number(text)))) {
      const list = make("select", "", label);
      texts.forEach((text) => make("option", "", list, text));
      list.selectedIndex = at[k];
      list.onchange = () => { at[k] = list.selectedIndex; show(); };
      return;
    }
    const slider = make("input", "", label), value = make("output", "", label, texts[at[k]]);
    Object.assign(slider, { type: "range", min: 0, max: texts.length - 1, step: 1, value: at[k] });
    slider.oninput = () => { at[k] = Number(slider.value); value.textContent = texts[at[k]]; slider.ariaValueText = texts[at[k]]; show(); };
  });
  make("span", "", row, `recorded: ${states.length} states`);
  show();
};
