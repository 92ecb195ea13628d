import { describe, expect, it } from "vitest";
import {
  box,
  describeLife,
  drawTransition,
  isWalked,
  states,
  transitions,
} from "../../page/stories/keys/lifecycle.ts";

const [, disable, enable] = transitions;
if (!disable || !enable) throw new Error("a key can be disabled and enabled");

describe("a key's life cycle", () => {
  it.each(transitions)("has a line from the edge of $from to the edge of $to", (transition) => {
    const { start, end } = drawTransition(transition);
    const isOutside = ({ x, y }: typeof start, name: keyof typeof states) =>
      Math.abs(x - states[name].x) > box.width / 2 - 8 || Math.abs(y - states[name].y) > box.height / 2 - 8;
    expect([isOutside(start, transition.from), isOutside(end, transition.to)]).toEqual([true, true]);
  });

  it("keeps two lines between the same boxes apart, including their labels", () => {
    const [down, up] = [drawTransition(disable), drawTransition(enable)];
    expect(Math.abs(down.start.x - up.end.x)).toBeGreaterThan(10);
    expect(Math.abs(down.label.x - up.label.x)).toBeGreaterThan(40);
  });

  it("marks only transitions that were taken", () => {
    expect([disable, enable].map((one) => isWalked(["ACTIVE", "DISABLED"], one))).toEqual([true, false]);
  });

  it("describes the current state and the next ones in words", () => {
    expect(describeLife([])).toBe("It does not exist yet.");
    expect(describeLife(["ACTIVE", "ROTATED"])).toBe(
      "It was ACTIVE. It is ROTATED. Next: schedule: DESTROY_SCHEDULED; destroy: DESTROYED.",
    );
    expect(describeLife(["DESTROYED"])).toBe("It is DESTROYED. This state is final.");
  });
});
