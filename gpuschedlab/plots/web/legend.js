  // Legends; a part of draw.js.

  // The legend stands above, over the whole width, in as many rows as its names need.
  function legendAbove(data, layout, width) {
    const legend = { orientation: "h", xref: "container", yref: "container", x: 0, y: 1, xanchor: "left", yanchor: "top" };
    const named = data.filter((trace) => trace.name && trace.showlegend !== false);
    if (layout.showlegend === false || (named.length < 2 && layout.showlegend !== true)) return { legend, top: 10 };
    const widths = named.map((trace) => 50 + 6.3 * trace.name.length), total = widths.reduce((a, b) => a + b, 0);
    const columns = Math.max(1, Math.floor(width / Math.max(...widths)));
    const rows = total <= width ? 1 : Math.ceil(named.length / columns);
    const entry = { entrywidth: Math.max(...widths) - 50, entrywidthmode: "pixels" };
    return { legend: { ...legend, ...(rows > 1 ? entry : {}), itemwidth: 30, font: { size: 11 }, title: { text: "" } }, top: 12 + 19 * rows };
  }

  // What a trace looks like, as a CSS background; plotly has chosen its colours.
  const HATCHES = {
    "/": "repeating-linear-gradient(-45deg, INK 0 1px, transparent 1px 4px)", "\\": "repeating-linear-gradient(45deg, INK 0 1px, transparent 1px 4px)",
    "-": "repeating-linear-gradient(INK 0 1px, transparent 1px 3px)", "|": "repeating-linear-gradient(90deg, INK 0 1px, transparent 1px 3px)",
    ".": "radial-gradient(INK 1px, transparent 1.4px) 0 0 / 4px 4px",
  };
  HATCHES.x = `${HATCHES["/"]}, ${HATCHES["\\"]}`;
  HATCHES["+"] = `${HATCHES["-"]}, ${HATCHES["|"]}`;
  function swatch(trace) {
    const first = (value) => (typeof value === "string" ? value : value?.[0]);
    const lines = trace.mode?.includes("lines") && trace.line?.width > 0;
    const colour = (lines && first(trace.line.color)) || first(trace.marker?.color) || first(trace.fillcolor) || first(trace.line?.color) || "currentColor";
    const pattern = trace.fillpattern?.shape ? trace.fillpattern : trace.marker?.pattern ?? {}, shape = first(pattern.shape);
    if (!HATCHES[shape]) return colour;
    const replaced = pattern.fillmode === "replace" && !first(pattern.bgcolor);
    return `${HATCHES[shape].replaceAll("INK", replaced ? colour : first(pattern.fgcolor) ?? "#fff")} ${replaced ? "" : first(pattern.bgcolor) ?? colour}`;
  }
