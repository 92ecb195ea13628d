import { describe, expect, it } from "vitest";
import {
  boxHeight,
  describeLifecycle,
  drawTransition,
  isWalked,
  type Lifecycle,
  measureBox,
  measureGraph,
  placeState,
} from "../../page/parts/diagrams/lifecycle.ts";
import { keyLifecycle } from "../../page/stories/keys/lifecycle.ts";

const lifecycle: Lifecycle = {
  states: [
    { name: "on", column: 0, row: 0 },
    { name: "off", column: 0, row: 1 },
    { name: "gone", column: 1, row: 1 },
  ],
  transitions: [
    { from: "on", to: "off", label: "stop" },
    { from: "off", to: "on", label: "start" },
    { from: "off", to: "gone", label: "remove" },
  ],
};
const [stop, start, remove] = lifecycle.transitions;
if (!stop || !start || !remove) throw new Error("the graph has three transitions");

const box = measureBox(lifecycle);

describe("a lifecycle graph", () => {
  it("draws a line from the edge of a box to that of the other", () => {
    const line = drawTransition(lifecycle, remove);
    expect(line.start.y).toBeCloseTo(placeState({ column: 0, row: 1 }, box).y);
    expect(line.start.x).toBeGreaterThan(placeState({ column: 0, row: 1 }, box).x);
    expect(line.end.x).toBeLessThan(placeState({ column: 1, row: 1 }, box).x);
    expect(line.tip.split(" ")).toHaveLength(3);
  });

  it("keeps two lines between the same boxes apart, and their labels", () => {
    const [down, up] = [drawTransition(lifecycle, stop), drawTransition(lifecycle, start)];
    expect(down.start.y).toBeCloseTo(placeState({ column: 0, row: 0 }, box).y + boxHeight / 2);
    expect(Math.abs(down.start.x - up.end.x)).toBeGreaterThan(10);
    expect(Math.abs(down.label.x - up.label.x)).toBeGreaterThan(40);
  });

  it("has room for all boxes", () => {
    const { width, height } = measureGraph(lifecycle);
    const last = placeState({ column: 1, row: 1 }, box);
    expect([width > last.x, height > last.y]).toEqual([true, true]);
  });

  it("refuses a transition of a state that it does not have", () => {
    expect(() => drawTransition(lifecycle, { from: "on", to: "nowhere", label: "" })).toThrow(
      "no state nowhere",
    );
  });

  it("marks only transitions that were taken", () => {
    expect([stop, start, remove].map((one) => isWalked(["on", "off", "gone"], one))).toEqual([
      true,
      false,
      true,
    ]);
  });

  it("says in words where something is and what can come next", () => {
    expect(describeLifecycle(lifecycle, [])).toBe("It does not exist yet.");
    expect(describeLifecycle(lifecycle, ["on", "off"])).toBe(
      "It was on. It is off. Next: start: on; remove: gone.",
    );
    expect(describeLifecycle(lifecycle, ["gone"])).toBe("It is gone. This state is final.");
  });
});

describe("the life of a key", () => {
  it("draws every transition between states that exist", () => {
    for (const transition of keyLifecycle.transitions) drawTransition(keyLifecycle, transition);
  });

  it("has boxes for its longest state and the mark beside it", () => {
    expect(measureBox(keyLifecycle)).toBeGreaterThan(7.5 * "✓ DESTROY_SCHEDULED".length);
    expect(measureBox(lifecycle)).toBe(134);
  });
});
