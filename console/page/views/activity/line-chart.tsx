/** A small line chart over time; the text next to it has the newest value. */
import { drawDots, drawLine, height, roundUp, width } from "./line.ts";

interface LineChartProps {
  readonly title: string;
  /** The newest value, in words. */
  readonly now: string;
  /** Its age in seconds. */
  readonly seconds: number;
  /** Oldest first; undefined for intervals without data. */
  readonly values: readonly (number | undefined)[];
  /** A second, paler line. */
  readonly others?: readonly (number | undefined)[];
  /** Number of values across the full width. */
  readonly count: number;
  readonly format: (value: number) => string;
}

export function LineChart({ title, now, seconds, values, others = [], count, format }: LineChartProps) {
  const known = [...values, ...others].filter((value) => value !== undefined);
  const max = roundUp(Math.max(...known, 0));
  return (
    <section class="line-chart">
      <h2>{title}</h2>
      <p class="now">
        {now} {seconds > 0 && <span class="hint">{seconds} s ago</span>}
      </p>
      <div class="plot">
        <svg
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          focusable="false"
        >
          <path class="other" d={drawLine(others, count, max)} />
          <path class="line" d={drawLine(values, count, max)} />
          <path class="other dots" d={drawDots(others, count, max)} />
          <path class="line dots" d={drawDots(values, count, max)} />
        </svg>
        <span class="max hint" aria-hidden="true">
          {format(max)}
        </span>
      </div>
    </section>
  );
}
