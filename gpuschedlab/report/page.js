"use strict";
const read = (id) => JSON.parse(document.getElementById(id).textContent);

for (const plot of document.querySelectorAll(".plot")) {
  const name = plot.closest("section").id, figures = read(plot.dataset.figures);
  const choice = document.getElementById(plot.dataset.choice);
  const grid = gpuschedlabFigures.grid(plot, [{ name, height: Number(plot.dataset.height) }]);
  const show = (number) => grid.show({ [name]: figures[number] });
  choice?.addEventListener("change", () => show(choice.selectedIndex));
  show(0);
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
const redraw = () => document.querySelectorAll(".plot").forEach((plot) => plot.gpuschedlab.redraw());
window.addEventListener("beforeprint", redraw);
window.addEventListener("afterprint", redraw);
document.documentElement.dataset.drawn = "yes";
