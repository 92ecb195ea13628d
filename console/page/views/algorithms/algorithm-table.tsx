/** All algorithms, each value as a number and as a bar on a logarithmic scale. */
import type { ComponentChildren } from "preact";
import { Scroller } from "../../parts/scroller.tsx";
import { formatMs, formatNumber } from "../../values.ts";
import { type AlgorithmRow, type Choice, type Column, describeCategory, type Times } from "./rows.ts";

interface AlgorithmTableProps {
  readonly rows: readonly AlgorithmRow[];
  readonly times: ReadonlyMap<string, Times>;
  readonly choice: Choice;
  readonly onSort: (column: Column) => void;
}

const columns: readonly { readonly column: Column; readonly title: string; readonly unit: string }[] = [
  { column: "name", title: "Algorithm", unit: "" },
  { column: "category", title: "Category", unit: "" },
  { column: "publicKeyBytes", title: "Public key", unit: "bytes" },
  { column: "secretKeyBytes", title: "Secret key", unit: "bytes" },
  { column: "resultBytes", title: "Signature or ciphertext", unit: "bytes" },
  { column: "makeMs", title: "New key, then sign or encapsulate", unit: "measured" },
  { column: "useMs", title: "Verify or encapsulate", unit: "measured" },
];

export function AlgorithmTable({ rows, times, choice, onSort }: AlgorithmTableProps) {
  return (
    <Scroller class="scroll algorithms" label="Algorithms">
      <table>
        <thead>
          <tr>
            {columns.map(({ column, title, unit }) => (
              <th key={column} scope="col" aria-sort={describeOrder(choice, column)}>
                <button type="button" onClick={() => onSort(column)}>
                  {title}
                </button>
                {unit && <span class="hint">{unit}</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.name} row={row} times={times.get(row.name)} />
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

function describeOrder(
  { sort, isDescending }: Choice,
  column: Column,
): "ascending" | "descending" | undefined {
  if (sort !== column) return undefined;
  return isDescending ? "descending" : "ascending";
}

function Row({ row, times }: { readonly row: AlgorithmRow; readonly times: Times | undefined }) {
  return (
    <tr data-family={row.family}>
      <th scope="row">
        {row.name}
        <span class="hint">{row.standard}</span>
      </th>
      <td>{describeCategory(row.category)}</td>
      <Bar scale={bytesScale} value={row.publicKeyBytes}>
        {formatNumber(row.publicKeyBytes)}
      </Bar>
      <Bar scale={bytesScale} value={row.secretKeyBytes}>
        {formatNumber(row.secretKeyBytes)}
      </Bar>
      <Bar scale={bytesScale} value={row.resultBytes}>
        {formatNumber(row.resultBytes)}
      </Bar>
      <Bar scale={msScale} value={times?.makeMs}>
        {times && formatMs(times.makeMs)}
      </Bar>
      <Bar scale={msScale} value={times?.useMs}>
        {times && formatMs(times.useMs)}
      </Bar>
    </tr>
  );
}

/** The ends of a logarithmic scale: equal distances for equal factors. */
type Scale = readonly [from: number, to: number];

const bytesScale: Scale = [10, 100_000];
const msScale: Scale = [0.1, 10_000];

interface BarProps {
  readonly scale: Scale;
  readonly value: number | undefined;
  readonly children: ComponentChildren;
}

function Bar({ scale: [from, to], value, children }: BarProps) {
  if (value === undefined) return <td class="hint">–</td>;
  const share = Math.log(value / from) / Math.log(to / from);
  return (
    <td>
      {children}
      <svg class="bar-picture" width="100%" height="6" aria-hidden="true" focusable="false">
        <rect class="track" width="100%" height="6" rx="3" />
        <rect class="family" width={`${100 * Math.min(1, Math.max(0, share))}%`} height="6" rx="3" />
      </svg>
    </td>
  );
}
