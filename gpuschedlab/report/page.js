"use strict";
const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

function read(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

for (const plot of document.querySelectorAll(".plot")) {
  const figures = read(plot.dataset.figures);
  Plotly.newPlot(plot, figures[0].data, figures[0].layout, CONFIG);
  const choice = document.getElementById(plot.dataset.choice);
  if (choice) {
    choice.addEventListener("change", () => {
      const chosen = figures[choice.selectedIndex];
      Plotly.react(plot, chosen.data, chosen.layout, CONFIG);
    });
  }
}

// Click on a column's name: sort by it, click again: the other way round. Cells without a value stay last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const up = head.getAttribute("aria-sort") !== "ascending";
    const value = (row) => row.cells[head.cellIndex].dataset.value;
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return up ? difference : -difference;
    };
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...[...body.rows].sort(order));
  });
}

// Figures keep the width of the page that they are printed on.
const resize = () => document.querySelectorAll(".plot").forEach((plot) => Plotly.Plots.resize(plot));
window.addEventListener("beforeprint", resize);
window.addEventListener("afterprint", resize);
document.documentElement.dataset.drawn = "yes";
