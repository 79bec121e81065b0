// Draws the reciprocal ranks of the page Learning; without it the table has the numbers.
"use strict";

window.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("curve");
  if (!place) return;
  let plot = null;
  let data = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw() {
    if (plot) plot.destroy();
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const number = (plot, value) => (value === null || value === undefined ? "" : value.toFixed(2));
    plot = new uPlot({
      width: place.clientWidth, height: 280, legend: { live: false },
      scales: { x: { time: false }, y: { range: [0, 1.05] } },
      axes: [{ ...axis, label: "opening", labelSize: 22, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] }, { ...axis, size: 44 }],
      series: [
        { label: "Opening" },
        { label: "Reciprocal rank", stroke: colour("--quiet"), paths: () => null, points: { show: true, size: 5, fill: colour("--quiet") }, value: number },
        { label: "Mean of the last 20", stroke: colour("--link"), width: 2, points: { show: false }, value: number },
      ],
    }, [data[0].map((_, place) => place + 1), data[1], data[2]], place);
  }

  fetch("/learning/curve.json").then((answer) => answer.json()).then((found) => {
    data = found;
    const details = document.getElementById("curve-details");
    details.addEventListener("toggle", () => { if (details.open && !plot) draw(); });  // it has no width before
    if (details.open) draw();
    window.addEventListener("resize", () => { if (plot) plot.setSize({ width: place.clientWidth, height: 280 }); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (plot) draw(); });
  });
});
