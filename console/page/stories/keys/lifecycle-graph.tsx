/** A key's life cycle as a graph. The current state is filled; earlier states have a tick. */
import { useUniqueId } from "../../unique-id.ts";
import { box, describeLife, drawTransition, isWalked, states, transitions } from "./lifecycle.ts";

/** @param walk the states so far, in order; the last one is the current state */
export function LifecycleGraph({ walk }: { readonly walk: readonly string[] }) {
  const id = useUniqueId();
  return (
    <div class="lifecycle">
      <svg role="img" viewBox="0 0 462 216" aria-label="States of a key" aria-describedby={id}>
        <marker
          id="tip"
          viewBox="0 0 8 8"
          refX="8"
          refY="4"
          markerWidth="8"
          markerHeight="8"
          orient="auto"
          markerUnits="userSpaceOnUse"
        >
          <path d="M0 0 8 4 0 8z" />
        </marker>
        {transitions.map((transition) => {
          const { start, end, label } = drawTransition(transition);
          return (
            <g key={`${transition.from} ${transition.to}`} data-passed={isWalked(walk, transition)}>
              <line x1={start.x} y1={start.y} x2={end.x} y2={end.y} marker-end="url(#tip)" />
              <text x={label.x} y={label.y + 3.5}>
                {transition.label}
              </text>
            </g>
          );
        })}
        {Object.entries(states).map(([name, { x, y }]) => {
          const isCurrent = walk.at(-1) === name;
          const isPassed = !isCurrent && walk.includes(name);
          return (
            <g key={name} class="state" data-current={isCurrent} data-passed={isPassed}>
              <rect x={x - box.width / 2} y={y - box.height / 2} {...box} rx={4} />
              <text x={x} y={y + 3.5}>
                {isPassed && "✓ "}
                {isCurrent && "● "}
                {name}
              </text>
            </g>
          );
        })}
      </svg>
      <p class="unseen" id={id}>
        {describeLife(walk)}
      </p>
    </div>
  );
}
