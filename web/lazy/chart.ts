// Charts over time, on a canvas.
import uPlot from "uplot";

const day = 86_400; // seconds

/** bars shows values by day in host, and returns a function that takes it away. times are seconds since 1970; unit is before values. */
export function bars(
  host: HTMLElement, times: number[], series: { label: string; stroke: string; values: number[] }[], height: number, unit: string,
): () => void {
  const colour = getComputedStyle(host).color;
  const axis = { stroke: colour, grid: { stroke: colour, width: 0.2 }, ticks: { stroke: colour, width: 0.2 } };
  const plot = new uPlot({
    width: host.clientWidth || 300, height, legend: { show: series.length > 1 }, cursor: { show: false },
    scales: { x: { range: (_, from, to) => [from - day, to + day] }, y: { range: (_, __, to) => [0, to || 1] } }, axes: [axis, { ...axis, values: (_, list) => list.map((v) => unit + v) }],
    series: [{}, ...series.map((s) => ({
      label: s.label, stroke: s.stroke, fill: s.stroke, points: { show: false }, paths: uPlot.paths.bars!({ size: [0.8, 24, 2] }),
    }))],
  }, [times, ...series.map((s) => s.values)], host);
  return () => plot.destroy();
}
