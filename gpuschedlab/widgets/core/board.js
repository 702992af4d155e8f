export default {
  render({ model, el }) {
    const page = window.gpuschedlabFigures, names = model.get("places").map((place) => place.name);
    page.replace(model.get("identity"));
    const frame = document.createElement("div"), inner = document.createElement("div");
    frame.className = "gpuschedlab-frame";
    inner.className = "gpuschedlab-two";
    frame.append(inner);
    el.append(frame);
    const grid = page.grid(inner, model.get("places"), {
      compact: true,
      clicked: (figure, trace, point) => model.send({ kind: "clicked", figure, trace, point }),
    });
    const figure = (name) => model.get(`figure_${names.indexOf(name)}`);

    // All figures that one message brings are drawn together.
    const changed = new Set();
    const listeners = names.map((name, i) => [`change:figure_${i}`, () => {
      if (!changed.size)
        queueMicrotask(() => {
          grid.show(Object.fromEntries([...changed].map((each) => [each, figure(each)])));
          changed.clear();
        });
      changed.add(name);
    }]);
    listeners.forEach(([event, listener]) => model.on(event, listener));
    grid.show(Object.fromEntries(names.map((name) => [name, figure(name)])));

    // plotly is on the page already where an output brought it; otherwise the kernel is asked for it.
    const receive = (message, buffers) => {
      if (message.kind === "library" && !page.given()) page.give(buffers[0]);
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

    // Letters and arrows choose and move here; to JupyterLab they would be the notebook's shortcuts, too.
    const keep = ({ target }) => {
      if (target.closest(".gpuschedlab-explorer") && target.matches("select, .noUi-handle"))
        target.setAttribute("data-lm-suppress-shortcuts", "true");
    };
    document.addEventListener("focusin", keep);
    return () => {
      clearTimeout(timer);
      grid.close();
      listeners.forEach(([event, listener]) => model.off(event, listener));
      model.off("msg:custom", receive);
      document.removeEventListener("focusin", keep);
    };
  },
};
