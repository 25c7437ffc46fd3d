// Charts over time, on a canvas.
import uPlot from "uplot";

/** line shows values over time in host, and returns a function that takes it away. times are seconds since 1970. */
export function line(
  host: HTMLElement, times: number[], series: { label: string; stroke: string; values: number[] }[], height: number,
): () => void {
  const plot = new uPlot({
    width: host.clientWidth || 300, height, legend: { show: series.length > 1 }, cursor: { drag: { x: false, y: false } },
    series: [{}, ...series.map((s) => ({ label: s.label, stroke: s.stroke, width: 1.5 }))],
  }, [times, ...series.map((s) => s.values)], host);
  return () => plot.destroy();
}
