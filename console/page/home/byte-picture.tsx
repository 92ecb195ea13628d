/** Pictures of bytes on one scale: each square is a byte. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useUniqueId } from "../unique-id.ts";
import { formatNumber } from "../values.ts";
import { countRows, drawBytes, drawSquares, findByte, type Part, shades, squareSide } from "./cells.ts";

interface GridProps {
  readonly count: number;
  readonly columns: number;
}

/** A picture's area. Its unit is the font size, which the style sheet sets for all pictures at once. */
function Grid({ count, columns, children }: GridProps & { readonly children: ComponentChildren }) {
  const rows = countRows(count, columns);
  return (
    <svg
      class="cells"
      viewBox={`0 0 ${columns} ${rows}`}
      width={`${columns}em`}
      height={`${rows}em`}
      aria-hidden="true"
      focusable="false"
    >
      {children}
    </svg>
  );
}

/** A number of bytes without values. */
export function CountPicture(props: GridProps) {
  return (
    <Grid {...props}>
      <path class="classical" d={drawSquares(props.count, props.columns)} />
    </Grid>
  );
}

interface BytePictureProps extends GridProps {
  /** Undefined while loading; the picture then shows placeholders. */
  readonly bytes: Uint8Array | undefined;
  readonly parts: readonly Part[];
  /** The byte from which red spreads over all others once the value is broken. */
  readonly brokenAt?: number | undefined;
  /** Drawn above the bytes. */
  readonly children?: ComponentChildren;
}

/** Bytes: the colour shows their part, the shade their value. */
export function BytePicture({ bytes, parts, brokenAt, children, ...grid }: BytePictureProps) {
  const { count, columns } = grid;
  const id = useUniqueId();
  // Thousands of squares, redrawn only if they change.
  const squares = useMemo(
    () =>
      bytes === undefined ? (
        <path class="place" d={drawSquares(count, columns)} />
      ) : (
        <g id={id} class="values">
          {drawBytes(bytes, parts, columns).map(({ part, level, path }) => (
            <path key={`${part} ${level}`} style={shade(part, level)} d={path} />
          ))}
        </g>
      ),
    [bytes, count, parts, columns, id],
  );
  return (
    <Grid {...grid}>
      {squares}
      {bytes !== undefined && brokenAt !== undefined && <Break of={id} at={brokenAt} {...grid} />}
      {children}
    </Grid>
  );
}

/** A part's colour, mixed with the background. */
function shade(part: number, level: number) {
  const share = 22 + (level * 78) / (shades - 1);
  return { fill: `color-mix(in oklab, var(--part-${part}) ${share}%, var(--ground))` };
}

/** Redraws squares in red, in a circle that grows from one of them. The colours are in the style sheet. */
function Break({ of, at, count, columns }: GridProps & { readonly of: string; readonly at: number }) {
  const { x, y } = findPlace(at, columns);
  return (
    <>
      <clipPath id={`${of}-break`}>
        <circle key={at} class="spread" cx={x} cy={y} r={columns + countRows(count, columns)} />
      </clipPath>
      <use href={`#${of}`} class="broken" clip-path={`url(#${of}-break)`} />
    </>
  );
}

/** What a picture's colours stand for: the names of style sheet variables, each with a text. */
export function Legend({ entries }: { readonly entries: readonly (readonly [string, string])[] }) {
  return (
    <ul class="kinds">
      {entries.map(([name, text]) => (
        <li key={text} style={{ "--kind": `var(--${name})` }}>
          {text}
        </li>
      ))}
    </ul>
  );
}

/** A legend of a value's parts, with their sizes. */
export function PartsLegend({ parts }: Pick<BytePictureProps, "parts">) {
  return (
    <Legend entries={parts.map(({ name, bytes }, at) => [`part-${at}`, `${name}, ${formatNumber(bytes)}`])} />
  );
}

interface MarkProps {
  readonly at: number;
  readonly columns: number;
  readonly kind: "flipped" | "pointed" | "chosen";
}

/** A square on top of the others. */
export function Mark({ at, columns, kind }: MarkProps) {
  return <rect class={kind} {...findPlace(at, columns)} width={squareSide} height={squareSide} />;
}

/** The index of the byte under the pointer; undefined outside. The listening element has the picture's area. */
export function findPointed(
  event: MouseEvent & { readonly currentTarget: Element },
  columns: number,
  count: number,
): number | undefined {
  const { left, top, width, height } = event.currentTarget.getBoundingClientRect();
  const x = ((event.clientX - left) / width) * columns;
  const y = ((event.clientY - top) / height) * countRows(count, columns);
  return findByte(x, y, columns, count);
}

function findPlace(at: number, columns: number): { readonly x: number; readonly y: number } {
  return { x: at % columns, y: Math.floor(at / columns) };
}
