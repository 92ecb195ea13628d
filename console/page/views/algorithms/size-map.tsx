/** Algorithms as points on logarithmic scales: public key size against signature or ciphertext size. */
import { formatNumber } from "../../values.ts";
import type { AlgorithmRow } from "./rows.ts";
import { keyScale, sizeScale } from "./scale.ts";

/** The drawing area and its margins in picture units. */
const width = 900;
const height = 420;
const left = 70;
const bottom = 44;

/** Parameter sets with equal sizes share a point: "SLH-DSA-SHA2-128s" and "SLH-DSA-SHAKE-128s". */
interface Point {
  readonly label: string;
  readonly family: string;
  readonly kind: string;
  readonly x: number;
  readonly y: number;
  readonly isLabelLeft: boolean;
}

const toX = (bytes: number): number => left + keyScale.place(bytes) * (width - left - 20);
const toY = (bytes: number): number => (height - bottom) * (1 - sizeScale.place(bytes)) + 8;

export function SizeMap({ rows }: { readonly rows: readonly AlgorithmRow[] }) {
  return (
    <figure class="size-map">
      <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true" focusable="false">
        {keyScale.ticks.map((bytes) => (
          <g key={bytes} class="axis">
            <line x1={toX(bytes)} x2={toX(bytes)} y1={toY(100_000)} y2={height - bottom + 8} />
            <text x={toX(bytes)} y={height - bottom + 24} text-anchor="middle">
              {formatNumber(bytes)}
            </text>
          </g>
        ))}
        {sizeScale.ticks.map((bytes) => (
          <g key={bytes} class="axis">
            <line x1={left} x2={width - 20} y1={toY(bytes)} y2={toY(bytes)} />
            <text x={left - 8} y={toY(bytes) + 4} text-anchor="end">
              {formatNumber(bytes)}
            </text>
          </g>
        ))}
        {toPoints(rows).map(({ label, family, kind, x, y, isLabelLeft }) => (
          <g key={label} data-family={family}>
            {kind === "Signature" ? (
              <circle class="family" cx={x} cy={y} r="6" />
            ) : (
              <rect class="family" x={x - 5.5} y={y - 5.5} width="11" height="11" />
            )}
            <text x={isLabelLeft ? x - 11 : x + 11} y={y + 4} text-anchor={isLabelLeft ? "end" : "start"}>
              {label}
            </text>
          </g>
        ))}
      </svg>
      <figcaption class="hint">
        Size of the public key (across) and of the signature or ciphertext (up) in bytes; each line is ten
        times the one before. Circles sign, squares exchange keys. Grey: breakable by a large quantum
        computer. The table lists all numbers.
      </figcaption>
    </figure>
  );
}

/** "SLH-DSA-128s", for two parameter sets of equal size. */
function nameSet({ name }: AlgorithmRow): string {
  return name.replace(/-(SHA2|SHAKE)/, "");
}

function toPoints(rows: readonly AlgorithmRow[]): Point[] {
  const points = new Map<string, Point>();
  for (const row of rows) {
    const { family, kind, publicKeyBytes, resultBytes } = row;
    const label = nameSet(row);
    const [x, y] = [toX(publicKeyBytes), toY(resultBytes)];
    // Labels of close neighbours go on different sides.
    const isLabelLeft = publicKeyBytes <= 32 || family === "ML-KEM" || label === "SLH-DSA-192f";
    points.set(label, { label, family, kind, x, y, isLabelLeft });
  }
  return [...points.values()];
}
