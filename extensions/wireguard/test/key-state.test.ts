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

/** With key 2 on trial from this second, after the handshake at second 1. */
const onTrial = (from = 116) => accept(inUse(), 2, at(from, 1)).state;

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

  const tooOld = accept(inUse(), 2, at(170, 120)).state;
  it.each<[string, KeyState, Observation, event: string | undefined, key: number | "random"]>([
    ["waits for a handshake", onTrial(), at(120, 1), undefined, 2],
    ["is not proven by an earlier handshake that was observed late", onTrial(), at(117, 114), undefined, 2],
    // wg reports whole seconds.
    ["is proven by a handshake in the same second", onTrial(116.7), at(118, 116), "proven", 2],
    ["does not restart a session that still carries packets", onTrial(), at(128, 1), undefined, 2],
    ["waits 12 seconds to restart a session that ends soon", onTrial(155), at(166.9, 1), undefined, 2],
    ["then restarts it", onTrial(155), at(167, 1), "renew", 2],
    ["waits 15 seconds for a handshake", onTrial(), at(130.9, 1), undefined, 2],
    ["is then the former one again", onTrial(), at(131, 1), "restored", 1],
    ["is random instead of a former one that is too old", tooOld, at(185, 120), "randomized", "random"],
    ["stays for 180 seconds after its agreement", inUse(), at(179.9, 120), undefined, 1],
    ["is then random", inUse(), at(180, 120), "randomized", "random"],
    ["does not survive a clock that was set back", inUse(), at(-10, 1), "randomized", "random"],
  ])("%s", (_, given, seen, event, key) => {
    const { state, event: found } = advance(structuredClone(given), seen);
    expect([found, isRandom(state) ? "random" : state.current.bytes[1]]).toEqual([event, key]);
  });

  it("is proven by a handshake after it was set, and the former one is wiped", () => {
    const state = onTrial();
    const former = state.trial?.former.bytes;
    expect(advance(state, at(121, 120))).toMatchObject({ event: "proven", state: { trial: undefined } });
    expect(former).toEqual(Uint8Array.of(0, 0));
  });

  it("restarts the session, and is randomized, only once", () => {
    const { state } = advance(onTrial(155), at(167, 1));
    expect(advance(state, at(168)).event).toBeUndefined();
    expect(advance(state, at(169, 168)).event).toBe("proven");
    const ended = advance(inUse(), at(180, 120));
    expect(advance(ended.state, at(181, 120)).event).toBeUndefined();
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
});

describe("an agreement", () => {
  const afterFailure = (jitter: number) =>
    postponeAgreement(start(), at(0).nowMs, { ...rules, jitter: () => jitter });
  const unused = advance(onTrial(), at(131, 1)).state;

  it.each<[string, boolean, KeyState, Observation]>([
    ["is due without a session", true, start(), at(0)],
    ["is not due while the session is younger than 115 seconds", false, inUse(), at(114.9, 0)],
    ["is due when the session is 115 seconds old", true, inUse(), at(115, 0)],
    ["waits beside a session that the agent found at its start", false, start(), at(50, 0)],
    ["is due when that session is 115 seconds old", true, start(), at(116, 0)],
    ["is not due while a key is on trial", false, onTrial(), at(200)],
    ["is not repeated at once after a failure", false, afterFailure(0.5), at(4.9)],
    ["is repeated five seconds after a failure", true, afterFailure(0.5), at(5)],
    ["is not repeated before half of that", false, afterFailure(0), at(2.4)],
    ["is repeated after half of that with the least jitter", true, afterFailure(0), at(2.5)],
    ["waits longer with the most jitter", false, afterFailure(1), at(7.4)],
    ["waits at most one and a half of that", true, afterFailure(1), at(7.5)],
    ["is not repeated at once after a key that no handshake used", false, unused, at(132, 1)],
    ["is repeated soon after a key that no handshake used", true, unused, at(136, 1)],
    ["is repeated after a failure, even if the clock is set back", true, afterFailure(0.5), at(-86_400)],
    ["is due if the clock was set back to before the last handshake", true, start(), at(0, 100)],
  ])("%s", (_, expected, state, seen) => {
    expect(isAgreementDue(state, seen, rules)).toBe(expected);
  });
});

/** What the agent does in one step of a history. */
type Happening = (state: KeyState, seen: Observation, number: number) => KeyState;

const nothing: Happening = (state) => state;
const happenings: readonly Happening[] = [
  nothing,
  (state, seen, number) => accept(state, number, seen).state,
  (state, { nowMs }) => restoreKey(state, nowMs, rules).state,
  (state, { nowMs }) => postponeAgreement(state, nowMs, rules),
];
const pauses = [1, 16, 64];

describe("whatever happens", () => {
  // Four steps of 15 kinds, one of which is a handshake: all 50,625 histories.
  it("a key is never empty, on trial for more than 15 seconds, or in use for more than 180", () => {
    let histories = 0;
    const explore = (state: KeyState, seconds = 0, handshake?: number, depth = 4): void => {
      histories += 1;
      if (depth === 0) return;
      for (const pause of pauses) {
        const now = seconds + pause;
        const follow = (latest: number | undefined, happen = nothing): void => {
          const seen = at(now, latest);
          // A step wipes the keys that it drops, which other branches still need.
          const next = advance(happen(structuredClone(state), seen, depth), seen).state;
          requireSound(next, seen);
          explore(next, now, latest, depth - 1);
        };
        follow(now);
        for (const happen of happenings) follow(handshake, happen);
      }
    };
    explore(start());
    expect(histories).toBeGreaterThan(50_000);
  });
});

function requireSound({ current, trial }: KeyState, { nowMs }: Observation): void {
  const isSound =
    current.bytes.some((byte) => byte !== 0) &&
    (current.agreedAtMs === undefined) === (current.bytes[0] === 255) &&
    (current.agreedAtMs === undefined || nowMs - current.agreedAtMs < rules.maxKeyMs) &&
    (trial === undefined ||
      (nowMs - trial.startedMs < rules.restoreAfterMs && trial.former.bytes.some((byte) => byte !== 0)));
  if (!isSound) expect({ current, trial, nowMs }).toBe("sound");
}
