/** Lays out a graph of states and transitions. Coordinates are in units of an SVG image. */

/** A state. Columns and rows count from 0 and may be fractions. */
export interface State {
  readonly name: string;
  readonly column: number;
  readonly row: number;
}

/** A transition from one state to another. */
export interface Transition {
  readonly from: string;
  readonly to: string;
  readonly label: string;
}

export interface Lifecycle {
  readonly states: readonly State[];
  readonly transitions: readonly Transition[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A line between two boxes, with a tip at its end. */
export interface Line {
  readonly start: Point;
  readonly end: Point;
  readonly label: Point;
  /** Corners of the tip, as the attribute `points` has them. */
  readonly tip: string;
}

/** A character at its widest, with the font of each; see lifecycle-graph.css. */
const boxCharacter = 7.6;
const labelCharacter = 6.4;
/** Characters that the mark of a state takes: "✓ ". */
const markCharacters = 2;
const minBoxWidth = 134;
/** Between a text and what is around it, on both sides together. */
const boxPadding = 16;
const labelPadding = 4;
export const labelHeight = 15;
export const boxHeight = 30;
const columnWidth = 126;
const rowHeight = 68;
/** The space at the edges. */
const margin = 4;
/** How far a label is from one of two lines, in parts of their shift. */
const labelShift = 4;
/** How far from the middle each of two lines is that connect the same boxes. */
const lineGap = 7;

/** The width of all boxes of a graph: that of the longest name, with its mark. */
export function measureBox({ states }: Pick<Lifecycle, "states">): number {
  const longest = Math.max(...states.map(({ name }) => name.length)) + markCharacters;
  return Math.max(minBoxWidth, longest * boxCharacter + boxPadding);
}

/** The width of what is behind a label. */
export function measureLabel(label: string): number {
  return label.length * labelCharacter + labelPadding;
}

/** The centre of a state's box. */
export function placeState({ column, row }: Pick<State, "column" | "row">, boxWidth: number): Point {
  return {
    x: margin + boxWidth / 2 + column * columnWidth,
    y: margin + boxHeight / 2 + row * rowHeight,
  };
}

/** Width and height of the image. */
export function measureGraph(lifecycle: Lifecycle): { readonly width: number; readonly height: number } {
  const boxWidth = measureBox(lifecycle);
  const centres = lifecycle.states.map((state) => placeState(state, boxWidth));
  return {
    width: Math.max(...centres.map(({ x }) => x)) + boxWidth / 2 + margin,
    height: Math.max(...centres.map(({ y }) => y)) + boxHeight / 2 + margin,
  };
}

/** Draws a transition from the edge of one box to that of the other. @throws RangeError for an unknown state */
export function drawTransition(lifecycle: Lifecycle, { from, to }: Transition): Line {
  const boxWidth = measureBox(lifecycle);
  const [a, b] = [findCentre(lifecycle, from, boxWidth), findCentre(lifecycle, to, boxWidth)];
  const distance = Math.hypot(b.x - a.x, b.y - a.y);
  const unit = { x: (b.x - a.x) / distance, y: (b.y - a.y) / distance };
  const hasReturn = lifecycle.transitions.some((other) => other.from === to && other.to === from);
  const shift = hasReturn ? { x: -unit.y * lineGap, y: unit.x * lineGap } : { x: 0, y: 0 };
  const reach = Math.min(boxWidth / 2 / Math.abs(unit.x), boxHeight / 2 / Math.abs(unit.y));
  const start = { x: a.x + unit.x * reach + shift.x, y: a.y + unit.y * reach + shift.y };
  const end = { x: b.x - unit.x * reach + shift.x, y: b.y - unit.y * reach + shift.y };
  return { start, end, label: placeLabel(start, end, shift), tip: drawTip(end, unit) };
}

/** The label is on the line; of two lines between the same boxes, at the outer side. */
function placeLabel(start: Point, end: Point, shift: Point): Point {
  return {
    x: (start.x + end.x) / 2 + shift.x * labelShift,
    y: (start.y + end.y) / 2 + shift.y * labelShift,
  };
}

function drawTip({ x, y }: Point, unit: Point): string {
  const back = { x: x - 8 * unit.x, y: y - 8 * unit.y };
  const side = { x: -4 * unit.y, y: 4 * unit.x };
  return [
    { x, y },
    { x: back.x + side.x, y: back.y + side.y },
    { x: back.x - side.x, y: back.y - side.y },
  ]
    .map((corner) => `${corner.x.toFixed(1)},${corner.y.toFixed(1)}`)
    .join(" ");
}

function findCentre({ states }: Lifecycle, name: string, boxWidth: number): Point {
  const state = states.find((one) => one.name === name);
  if (state === undefined) throw new RangeError(`the graph has no state ${name}`);
  return placeState(state, boxWidth);
}

/** Tells whether something went from one state directly to another. @param walk its states, in their order */
export function isWalked(walk: readonly string[], { from, to }: Pick<Transition, "from" | "to">): boolean {
  return walk.some((name, at) => name === from && walk[at + 1] === to);
}

/** Says where something is and what can come next, for readers who do not see the graph. */
export function describeLifecycle({ transitions }: Lifecycle, walk: readonly string[]): string {
  const current = walk.at(-1);
  if (current === undefined) return "It does not exist yet.";
  const next = transitions.filter(({ from }) => from === current).map(({ label, to }) => `${label}: ${to}`);
  const passed = walk.length > 1 ? `It was ${walk.slice(0, -1).join(", then ")}. ` : "";
  return `${passed}It is ${current}. ${next.length > 0 ? `Next: ${next.join("; ")}.` : "This state is final."}`;
}
