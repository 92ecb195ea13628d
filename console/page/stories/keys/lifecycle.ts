/** A key's life cycle as described in docs/keys.md, and its drawing. Coordinates are in SVG units. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

type State = keyof typeof states;

/** A transition between two states. */
export interface Transition {
  readonly from: State;
  readonly to: State;
  readonly label: string;
}

/** The centre of each box. */
export const states = {
  ACTIVE: { x: 92, y: 20 },
  ROTATED: { x: 370, y: 20 },
  DISABLED: { x: 92, y: 108 },
  DESTROY_SCHEDULED: { x: 92, y: 196 },
  DESTROYED: { x: 370, y: 196 },
} as const;
export const box = { width: 176, height: 30 };

// Transitions whose lines would cross boxes are only in the sentence below the graph.
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

/** Distance of each of two lines from the centre if they connect the same boxes, and of their labels. */
const lineGap = 7;
const labelGap = 28;

/** Draws a line from the edge of one box to the edge of the other. */
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

/**
 * Whether a key went directly from one state to the other.
 *
 * @param walk the key's states in order
 */
export function isWalked(walk: readonly string[], { from, to }: Transition): boolean {
  return walk.some((name, at) => name === from && walk[at + 1] === to);
}

/** Describes the current state and the next ones, for readers who do not see the graph. */
export function describeLife(walk: readonly string[]): string {
  const current = walk.at(-1);
  if (current === undefined) return "It does not exist yet.";
  const next = transitions.filter(({ from }) => from === current).map(({ label, to }) => `${label}: ${to}`);
  const passed = walk.length > 1 ? `It was ${walk.slice(0, -1).join(", then ")}. ` : "";
  return `${passed}It is ${current}. ${next.length > 0 ? `Next: ${next.join("; ")}.` : "This state is final."}`;
}
