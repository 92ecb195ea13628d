/** A graph of states and transitions. The current state is filled; those that were passed have a tick. */

import { useUniqueId } from "../../unique-id.ts";
import {
  boxHeight,
  boxWidth,
  describeLifecycle,
  drawTransition,
  isWalked,
  type Lifecycle,
  measureGraph,
  placeState,
  type State,
  type Transition,
} from "./lifecycle.ts";

interface LifecycleGraphProps {
  readonly label: string;
  readonly lifecycle: Lifecycle;
  /** The states so far, in their order; the last is the current one. */
  readonly walk: readonly string[];
}

export function LifecycleGraph({ label, lifecycle, walk }: LifecycleGraphProps) {
  const id = useUniqueId();
  const { width, height } = measureGraph(lifecycle);
  return (
    <div class="lifecycle">
      <svg
        role="img"
        viewBox={`0 0 ${width} ${height}`}
        // At most 1.3 times the size in which its text is as large as that of the page.
        style={{ maxWidth: `${width * 1.3}px` }}
        aria-label={label}
        aria-describedby={id}
      >
        {lifecycle.transitions.map((transition) => (
          <Edge
            key={`${transition.from} ${transition.to}`}
            lifecycle={lifecycle}
            transition={transition}
            isPassed={isWalked(walk, transition)}
          />
        ))}
        {lifecycle.states.map((state) => (
          <Box key={state.name} state={state} walk={walk} />
        ))}
      </svg>
      <p class="unseen" id={id}>
        {describeLifecycle(lifecycle, walk)}
      </p>
    </div>
  );
}

interface EdgeProps {
  readonly lifecycle: Lifecycle;
  readonly transition: Transition;
  readonly isPassed: boolean;
}

function Edge({ lifecycle, transition, isPassed }: EdgeProps) {
  const { start, end, label, tip } = drawTransition(lifecycle, transition);
  return (
    <g class="edge" data-passed={isPassed}>
      <line x1={start.x} y1={start.y} x2={end.x} y2={end.y} />
      <polygon points={tip} />
      <text x={label.x} y={label.y + 3.5}>
        {transition.label}
      </text>
    </g>
  );
}

function Box({ state, walk }: { readonly state: State; readonly walk: readonly string[] }) {
  const { x, y } = placeState(state);
  const isCurrent = walk.at(-1) === state.name;
  const isPassed = !isCurrent && walk.includes(state.name);
  return (
    <g class="state" data-current={isCurrent} data-passed={isPassed}>
      <rect x={x - boxWidth / 2} y={y - boxHeight / 2} width={boxWidth} height={boxHeight} rx={4} />
      <text x={x} y={y + 3.5}>
        {isPassed && "✓ "}
        {isCurrent && "● "}
        {state.name}
      </text>
    </g>
  );
}
