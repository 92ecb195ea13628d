/** Failing handlers, for tests of how a call ends. */
import { refuse } from "../../src/errors.ts";
import type { ProbeBehaviour } from "./probe.ts";

/** Refuses a field, with a message that gRPC has to encode. */
export function refuseText(): never {
  throw refuse("KEY_INVALID", "text: is no key, see 100%", { field: "text" }, [
    { field: "text", description: "is no key" },
  ]);
}

/** Refuses so many fields at such length that the status is larger than clients accept. */
export function refuseAtLength(): never {
  const text = "ü".repeat(5000);
  const violations = Array.from({ length: 500 }, (_, index) => ({
    field: `items[${index}]`,
    description: text,
  }));
  throw refuse("FIELD_INVALID", text, { path: text, field: text }, violations);
}

/** Fails like a bug. */
export function crash(): never {
  throw new Error("a bug");
}

/** Never answers. */
export function hang(): Promise<never> {
  return new Promise(() => {});
}

/** Handlers that all do the same, before any answer. */
export function always(act: () => Promise<never> | never): ProbeBehaviour {
  return {
    ask: act,
    // biome-ignore lint/correctness/useYield: it fails before any answer
    async *watch() {
      await act();
    },
    collect: act,
    // biome-ignore lint/correctness/useYield: it fails before any answer
    async *chat() {
      await act();
    },
  };
}

/** Streams that fail after their first message. */
export const afterOneMessage: ProbeBehaviour = {
  async *watch() {
    yield { text: "one" };
    refuseText();
  },
  async *chat() {
    yield { text: "one" };
    refuseText();
  },
};
