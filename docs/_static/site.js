// Figures and players take the colours of the page, and are drawn again when it changes between light and dark.
function themed() {
  document.body.dataset.jpThemeLight = document.documentElement.dataset.theme !== "dark";
  for (const board of document.querySelectorAll(".gpuschedlab-board")) board.gpuschedlab?.redraw();
}

// The board of the front page plays by itself, once; where motion is not welcome it shows the whole day.
function plays() {
  const board = document.querySelector(".front-board .gpuschedlab-player");
  if (!board) return;
  const start = () => {
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) return board.querySelector('[aria-label="play the steps"]').click();
    const slider = board.querySelector('[aria-label="step"]');
    slider.value = slider.max;
    slider.dispatchEvent(new Event("input"));
  };
  if (board.dataset.shown) return start();
  new MutationObserver((_, watch) => { watch.disconnect(); start(); }).observe(board, { attributeFilter: ["data-shown"] });
}

document.addEventListener("DOMContentLoaded", () => {
  themed();
  plays();
  new MutationObserver(themed).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
});
