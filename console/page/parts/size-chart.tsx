/** Sizes as bars on one scale, with numbers, so that no information is only in the picture. */
import type { SizeRow } from "../classical.ts";
import { formatNumber } from "../values.ts";

interface SizeChartProps {
  readonly title: string;
  readonly rows: readonly SizeRow[];
  /** Bytes of a full bar; by default the longest row. Adjacent charts need the same value. */
  readonly maxBytes?: number;
}

export function SizeChart({
  title,
  rows,
  maxBytes = Math.max(...rows.map(({ bytes }) => bytes)),
}: SizeChartProps) {
  return (
    <table class="sizes">
      <caption>{title}</caption>
      <thead class="unseen">
        <tr>
          <th scope="col">Algorithm</th>
          <th scope="col">Picture</th>
          <th scope="col">Bytes</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ label, bytes, isClassical = false }) => (
          <tr key={label}>
            <th scope="row">{label}</th>
            <td class="picture">
              <svg width="100%" height="14" aria-hidden="true" focusable="false">
                <rect class="track" width="100%" height="14" />
                <rect
                  class={isClassical ? "classical" : "quantum"}
                  width={`${(100 * bytes) / maxBytes}%`}
                  height="14"
                />
              </svg>
            </td>
            <td class="number">{formatNumber(bytes)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
