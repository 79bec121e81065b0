// Draws the curve of the page Demo, again after every round; without it the table has the numbers.
"use strict";

window.addEventListener("DOMContentLoaded", () => {
  const figure = document.getElementById("story-curve");
  const place = document.getElementById("demo-curve");
  if (!figure || !place) return;
  const HEIGHT = 320;
  let plot = null;
  let drawn = "";

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => value.toFixed(3).replace(/^0/, "");

  function draw(again) {
    const text = document.getElementById("story").dataset.curve;
    if (text === drawn && !again) return;
    const found = JSON.parse(text);
    if (!found.clicks.length) return;
    drawn = text;
    figure.hidden = false;
    if (plot) plot.destroy();
    const low = found.learned.map((value, i) => value - found.error[i]);
    const high = found.learned.map((value, i) => value + found.error[i]);
    const every = [...found.bm25, ...found.start_weights, ...found.counting, ...low, ...high];
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const line = (label, column, stroke, more) => ({ label: `${label} ${short(column[column.length - 1])}`, stroke: colour(stroke), points: { show: false }, ...more });
    const edge = { stroke: "transparent", points: { show: false } };
    plot = new uPlot({
      width: place.clientWidth, height: HEIGHT, legend: { live: false, markers: { width: 3, dash: (shown, i) => (shown.series[i].dash ? "dashed" : "solid") } }, cursor: { show: false },
      scales: { x: { time: false, range: [0, found.last] }, y: { range: [Math.min(...every) - 0.01, Math.max(...every, 0.83) + 0.01] } },
      axes: [
        { ...axis, label: "choices of each person", labelSize: 22, size: 36 },
        { ...axis, size: 50, incrs: [0.01, 0.02, 0.05, 0.1, 0.2], values: (_, ticks) => ticks.map((value) => value.toFixed(2).replace(/^0/, "")) },
      ],
      series: [
        { label: "Choices" },
        line("learned together", found.learned, "--link", { width: 3, points: { show: true, size: 6, fill: colour("--link") } }),
        line("BM25", found.bm25, "--quiet", { width: 2 }),
        line("start weights", found.start_weights, "--own", { width: 2, dash: [4, 4] }),
        line("start weights, counting", found.counting, "--own", { width: 2 }),
        { ...edge, label: "high" }, { ...edge, label: "low" },
      ],
      bands: [{ series: [5, 6], fill: `color-mix(in srgb, ${colour("--link")} 18%, transparent)` }],
    }, [found.clicks, found.learned, found.bm25, found.start_weights, found.counting, high, low], place);
  }

  draw(false);
  document.addEventListener("refreshed", () => draw(false));
  window.addEventListener("resize", () => { if (plot) plot.setSize({ width: place.clientWidth, height: HEIGHT }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(true));
});
