/** A graph of states and transitions. The current state is filled; those that were passed have a tick. */

import { useUniqueId } from "../../unique-id.ts";
import {
  boxHeight,
  describeLifecycle,
  drawTransition,
  isWalked,
  type Lifecycle,
  labelHeight,
  measureBox,
  measureGraph,
  measureLabel,
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
  const boxWidth = measureBox(lifecycle);
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
        {/* After all lines, so that no line crosses a text. */}
        {lifecycle.transitions.map((transition) => (
          <Label
            key={`${transition.from} ${transition.to}`}
            lifecycle={lifecycle}
            transition={transition}
            isPassed={isWalked(walk, transition)}
          />
        ))}
        {lifecycle.states.map((state) => (
          <Box key={state.name} state={state} walk={walk} boxWidth={boxWidth} />
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
  const { start, end, tip } = drawTransition(lifecycle, transition);
  return (
    <g class="edge" data-passed={isPassed}>
      <line x1={start.x} y1={start.y} x2={end.x} y2={end.y} />
      <polygon points={tip} />
    </g>
  );
}

function Label({ lifecycle, transition, isPassed }: EdgeProps) {
  const { x, y } = drawTransition(lifecycle, transition).label;
  const width = measureLabel(transition.label);
  return (
    <g class="edge" data-passed={isPassed}>
      <rect x={x - width / 2} y={y - labelHeight / 2} width={width} height={labelHeight} />
      <text x={x} y={y + 3.5}>
        {transition.label}
      </text>
    </g>
  );
}

interface BoxProps {
  readonly state: State;
  readonly walk: readonly string[];
  readonly boxWidth: number;
}

function Box({ state, walk, boxWidth }: BoxProps) {
  const { x, y } = placeState(state, boxWidth);
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
