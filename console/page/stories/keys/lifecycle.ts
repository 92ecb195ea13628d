/** The life of a key, as docs/keys.md describes it, and how it is drawn. Coordinates are in units of an SVG image. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export type State = keyof typeof states;

/** A transition from one state to another. */
export interface Transition {
  readonly from: State;
  readonly to: State;
  readonly label: string;
}

/** The middle of each box. */
export const states = {
  ACTIVE: { x: 92, y: 20 },
  ROTATED: { x: 370, y: 20 },
  DISABLED: { x: 92, y: 108 },
  DESTROY_SCHEDULED: { x: 92, y: 196 },
  DESTROYED: { x: 370, y: 196 },
} as const;
export const box = { width: 176, height: 30 };

// Lines that would cross boxes are in the sentence below the graph.
export const transitions: readonly Transition[] = [
  { from: "ACTIVE", to: "ROTATED", label: "rotate" },
  { from: "ACTIVE", to: "DISABLED", label: "disable" },
  { from: "DISABLED", to: "ACTIVE", label: "enable" },
  { from: "DISABLED", to: "ROTATED", label: "enable again" },
  { from: "DISABLED", to: "DESTROY_SCHEDULED", label: "schedule" },
  { from: "DESTROY_SCHEDULED", to: "DISABLED", label: "restore" },
  { from: "ROTATED", to: "DESTROY_SCHEDULED", label: "schedule" },
  { from: "DESTROY_SCHEDULED", to: "DESTROYED", label: "when due" },
  { from: "ROTATED", to: "DESTROYED", label: "destroy" },
];

/** How far from the middle each of two lines is that connect the same boxes, and each of their labels. */
const lineGap = 7;
const labelGap = 28;

/** Draws a line from the edge of one box to that of the other. */
export function drawTransition({ from, to }: Transition) {
  const [a, b] = [states[from], states[to]];
  const distance = Math.hypot(b.x - a.x, b.y - a.y);
  const unit = { x: (b.x - a.x) / distance, y: (b.y - a.y) / distance };
  const reach = Math.min(box.width / 2 / Math.abs(unit.x), box.height / 2 / Math.abs(unit.y));
  const hasReturn = transitions.some((other) => other.from === to && other.to === from);
  const place = ({ x, y }: Point, along: number, aside: number): Point => ({
    x: x + unit.x * along - (hasReturn ? unit.y * aside : 0),
    y: y + unit.y * along + (hasReturn ? unit.x * aside : 0),
  });
  return {
    start: place(a, reach, lineGap),
    end: place(b, -reach, lineGap),
    label: place(a, distance / 2, labelGap),
  };
}

/** Tells whether a key went from one state directly to another. @param walk its states, in their order */
export function isWalked(walk: readonly string[], { from, to }: Transition): boolean {
  return walk.some((name, at) => name === from && walk[at + 1] === to);
}

/** Says where a key is and what can come next, for readers who do not see the graph. */
export function describeLife(walk: readonly string[]): string {
  const current = walk.at(-1);
  if (current === undefined) return "It does not exist yet.";
  const next = transitions.filter(({ from }) => from === current).map(({ label, to }) => `${label}: ${to}`);
  const passed = walk.length > 1 ? `It was ${walk.slice(0, -1).join(", then ")}. ` : "";
  return `${passed}It is ${current}. ${next.length > 0 ? `Next: ${next.join("; ")}.` : "This state is final."}`;
}
