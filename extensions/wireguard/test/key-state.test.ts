import { describe, expect, it } from "vitest";
import {
  acceptKey,
  advanceKeys,
  isAgreementDue,
  type KeyState,
  keyTiming,
  type Observation,
  postponeAgreement,
  randomizeKey,
  restoreKey,
  startKeys,
} from "../key-state.ts";

const startMs = Date.UTC(2026, 10, 27);
let made = 0;
/** Random keys are 0xff, then a number; agreed ones have another first byte. */
const rules = {
  ...keyTiming,
  makeKey: () => Uint8Array.of(255, ++made % 256, made >> 8),
  jitter: () => 0.5,
};
const isRandom = ({ current }: KeyState) => current.bytes[0] === 255;

/** At a time in seconds, with the last handshake at another, or none. */
function at(seconds: number, handshake?: number): Observation {
  return {
    nowMs: startMs + seconds * 1000,
    handshakeMs: handshake === undefined ? 0 : startMs + handshake * 1000,
  };
}

const agreed = (number: number) => Uint8Array.of(1, number);
const start = () => startKeys(rules);
const accept = (state: KeyState, number: number, seen: Observation) =>
  acceptKey(state, agreed(number), seen, rules);
const advance = (state: KeyState, seen: Observation) => advanceKeys(state, seen, rules);

/** With key 1 from second 0, in use since a handshake at second 1. */
function inUse(): KeyState {
  const { state } = advance(accept(start(), 1, at(0)).state, at(1, 1));
  expect([state.trial, state.current.bytes]).toEqual([undefined, agreed(1)]);
  return state;
}

/** With key 2 on trial from second 116, after the handshake at second 1. */
const onTrial = () => accept(inUse(), 2, at(116, 1)).state;

describe("the pre-shared key", () => {
  it("is random at the start", () => {
    expect(isRandom(start())).toBe(true);
    expect(start().current.bytes).not.toEqual(start().current.bytes);
  });

  it("is the agreed one at once, and restarts a session that does not exist, or has expired", () => {
    expect(accept(start(), 1, at(0))).toMatchObject({
      event: "renew",
      state: { current: { bytes: agreed(1) } },
    });
    expect(accept(start(), 1, at(180, 0)).event).toBe("renew");
    expect(accept(start(), 1, at(179.9, 0)).event).toBeUndefined();
  });

  it("is proven by a handshake after it was set, and the former one is wiped", () => {
    const state = onTrial();
    const former = state.trial?.former.bytes;
    expect(advance(state, at(120, 1)).event).toBeUndefined();
    expect(advance(state, at(121, 120))).toMatchObject({ event: "proven", state: { trial: undefined } });
    expect(former).toEqual(Uint8Array.of(0, 0));
  });

  it("is not proven by an earlier handshake that was observed late", () => {
    expect(advance(onTrial(), at(117, 114)).event).toBeUndefined();
  });

  it("is proven by a handshake in the same second, of which wg reports the whole number", () => {
    expect(advance(accept(inUse(), 2, at(116.7, 1)).state, at(118, 116)).event).toBe("proven");
  });

  it("does not restart a session that still carries packets", () => {
    expect(advance(onTrial(), at(128, 1)).event).toBeUndefined();
  });

  it("restarts the session once, if it ends soon and no handshake follows within 12 seconds", () => {
    const late = accept(inUse(), 2, at(155, 1)).state;
    expect(advance(late, at(166.9, 1)).event).toBeUndefined();
    const { state, event } = advance(late, at(167, 1));
    expect(event).toBe("renew");
    expect(advance(state, at(168)).event).toBeUndefined();
    expect(advance(state, at(169, 168)).event).toBe("proven");
  });

  it("is the former one again, if no handshake follows within 15 seconds", () => {
    const state = onTrial();
    expect(advance(state, at(130.9, 1)).event).toBeUndefined();
    const restored = advance(state, at(131, 1));
    expect(restored).toMatchObject({ event: "restored", state: { current: { bytes: agreed(1) } } });
  });

  it("is random 180 seconds after its agreement", () => {
    const state = inUse();
    expect(advance(state, at(179.9, 120)).state).toBe(state);
    const ended = advance(state, at(180, 120));
    expect([ended.event, isRandom(ended.state)]).toEqual(["randomized", true]);
    expect(advance(ended.state, at(181, 120)).event).toBeUndefined();
  });

  it("is random instead of a former one whose 180 seconds have passed", () => {
    const state = accept(inUse(), 2, at(170, 120)).state;
    const ended = advance(state, at(185, 120));
    expect([ended.event, isRandom(ended.state)]).toEqual(["randomized", true]);
  });

  it("is random instead of a former one that was random", () => {
    const first = start();
    const formerBytes = Uint8Array.from(first.current.bytes);
    const ended = advance(accept(first, 1, at(0)).state, at(15));
    expect(isRandom(ended.state)).toBe(true);
    expect(ended.state.current.bytes).not.toEqual(formerBytes);
  });

  it("returns to the last proven one after several that no handshake used", () => {
    const second = accept(onTrial(), 3, at(122, 1)).state;
    expect(advance(second, at(137, 1)).state.current.bytes).toEqual(agreed(1));
  });

  it("is the former one at once, if the other end reports that it does not have the new one", () => {
    const { state, event } = restoreKey(onTrial(), at(117).nowMs, rules);
    expect([event, state.current.bytes]).toEqual(["restored", agreed(1)]);
    expect(restoreKey(state, at(118).nowMs, rules)).toEqual({ state });
  });

  it("is random when the agent ends, and all others are wiped", () => {
    const state = onTrial();
    expect(isRandom(randomizeKey(state, rules))).toBe(true);
    expect([state.current.bytes, state.trial?.former.bytes]).toEqual([new Uint8Array(2), new Uint8Array(2)]);
  });

  it("does not survive a clock that was set back", () => {
    expect(isRandom(advance(inUse(), at(-10, 1)).state)).toBe(true);
  });
});

describe("an agreement", () => {
  it("is due without a session, and when the session is 115 seconds old", () => {
    expect(isAgreementDue(start(), at(0), rules)).toBe(true);
    expect(isAgreementDue(inUse(), at(114.9, 0), rules)).toBe(false);
    expect(isAgreementDue(inUse(), at(115, 0), rules)).toBe(true);
  });

  it("waits beside a session that the agent found at its start", () => {
    expect(isAgreementDue(start(), at(50, 0), rules)).toBe(false);
    expect(isAgreementDue(start(), at(116, 0), rules)).toBe(true);
  });

  it("is not due while a key is on trial", () => {
    expect(isAgreementDue(onTrial(), at(200), rules)).toBe(false);
  });

  it.each([
    [0, 2.5],
    [0.5, 5],
    [1, 7.5],
  ])("is repeated after a failure with jitter %d after %d seconds", (jitter, seconds) => {
    const state = postponeAgreement(start(), at(0).nowMs, { ...rules, jitter: () => jitter });
    expect(isAgreementDue(state, at(seconds - 0.1), rules)).toBe(false);
    expect(isAgreementDue(state, at(seconds), rules)).toBe(true);
  });

  it("is repeated, not at once, after a key that no handshake used", () => {
    const { state } = advance(onTrial(), at(131, 1));
    expect(isAgreementDue(state, at(132, 1), rules)).toBe(false);
    expect(isAgreementDue(state, at(136, 1), rules)).toBe(true);
  });

  it("is repeated soon after a failure, even if the clock is set back", () => {
    const state = postponeAgreement(start(), at(86_400).nowMs, rules);
    expect(isAgreementDue(state, at(0), rules)).toBe(true);
  });

  it("is due if the clock was set back to before the last handshake", () => {
    expect(isAgreementDue(start(), at(0, 100), rules)).toBe(true);
  });
});

/** One step of a history: seconds that pass, and what happens then. */
type Happening = "nothing" | "handshake" | "agreed" | "refused" | "failed";

const happenings: readonly Happening[] = ["nothing", "handshake", "agreed", "refused", "failed"];
const pauses = [1, 16, 64];

describe("whatever happens", () => {
  // Four steps of 15 kinds: all 50,625 histories.
  it("a key is never empty, on trial for more than 15 seconds, or in use for more than 180", () => {
    let histories = 0;
    const explore = (
      state: KeyState,
      seconds: number,
      handshake: number | undefined,
      depth: number,
    ): void => {
      histories += 1;
      if (depth === 0) return;
      for (const pause of pauses)
        for (const happening of happenings) {
          const now = seconds + pause;
          const latest = happening === "handshake" ? now : handshake;
          const next = happen(copy(state), happening, at(now, latest), depth);
          requireSound(next, at(now, latest));
          explore(next, now, latest, depth - 1);
        }
    };
    explore(start(), 0, undefined, 4);
    expect(histories).toBeGreaterThan(50_000);
  });
});

/** A step wipes the keys that it drops, which other branches still need. */
function copy(state: KeyState): KeyState {
  return structuredClone(state);
}

/** What the agent does at a tick, after what happened. */
function happen(state: KeyState, happening: Happening, seen: Observation, number: number): KeyState {
  const { nowMs } = seen;
  const before =
    happening === "agreed"
      ? accept(state, number, seen).state
      : happening === "refused"
        ? restoreKey(state, nowMs, rules).state
        : happening === "failed"
          ? postponeAgreement(state, nowMs, rules)
          : state;
  return advance(before, seen).state;
}

function requireSound({ current, trial }: KeyState, { nowMs }: Observation): void {
  const isSound =
    current.bytes.some((byte) => byte !== 0) &&
    (current.agreedAtMs === undefined) === (current.bytes[0] === 255) &&
    (current.agreedAtMs === undefined || nowMs - current.agreedAtMs < rules.maxKeyMs) &&
    (trial === undefined ||
      (nowMs - trial.startedMs < rules.restoreAfterMs && trial.former.bytes.some((byte) => byte !== 0)));
  if (!isSound) expect({ current, trial, nowMs }).toBe("sound");
}
