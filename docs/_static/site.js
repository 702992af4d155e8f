// Figures and players take the colours of the page, and are drawn again when it changes between light and dark.
function themed() {
  document.body.dataset.jpThemeLight = document.documentElement.dataset.theme !== "dark";
  for (const board of document.querySelectorAll(".gpuschedlab-board")) board.gpuschedlab?.redraw();
}

document.addEventListener("DOMContentLoaded", () => {
  themed();
  new MutationObserver(themed).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
});
