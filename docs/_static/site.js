// Figures are drawn again when the page changes between light and dark.
new MutationObserver(() => {
  for (const board of document.querySelectorAll(".gpuschedlab-board")) board.gpuschedlab?.redraw();
}).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
