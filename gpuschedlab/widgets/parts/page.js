// What scripts of a page share: making elements, unpacking what Python packed, and keeping keys from the notebook's shortcuts.
window.gpuschedlabPage ??= {
  make(tag, parent, about = {}, text = "") {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(about)) made.setAttribute(name, value);
    made.textContent = text;
    parent.append(made);
    return made;
  },
  async unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
  },
  // `heard(event)` says whether it answered a key.
  keys(el, heard) {
    el.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
    el.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !heard(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  },
};
