/**
 * Decides which pre-shared key a WireGuard peer has at any time. Pure: callers pass the time and what they observed.
 *
 * A WireGuard session lasts 120 seconds, then its initiator starts another handshake, which uses the pre-shared key of
 * that moment; the packets of the session do not depend on it (wireguard.com/protocol). So a key that both ends set
 * shortly before takes effect without a lost packet.
 *
 * A new key is on trial until a handshake follows. The former key is kept for that long. There is always a key: before
 * the first agreement, and when the last one is too old, it is random, so that no handshake succeeds.
 */
import { wipe } from "../../src/crypto/bytes.ts";

/** Time limits, in milliseconds. */
export interface KeyTiming {
  /** Age of a session at which the peer agrees on the next key: just before WireGuard's REKEY_AFTER_TIME. */
  readonly agreeAfterMs: number;
  /** Time on trial after which the peer restarts a session to force a handshake. */
  readonly renewAfterMs: number;
  /** Age up to which a session is not restarted: it still carries packets, and the next key may be the right one. */
  readonly keepSessionMs: number;
  /** Time on trial after which the former key returns. */
  readonly restoreAfterMs: number;
  /** Age of an agreement after which its key is replaced by a random one. */
  readonly maxKeyMs: number;
  /** Age at which WireGuard gives up a session (REJECT_AFTER_TIME). */
  readonly maxSessionMs: number;
  /** Mean time between failed attempts. */
  readonly retryMs: number;
  /** Interval at which the agent reads the interface. */
  readonly tickMs: number;
}

export const keyTiming: KeyTiming = {
  agreeAfterMs: 115_000,
  // Later than an idle session's handshake: the first keepalive (5 s apart) that follows 120 seconds.
  renewAfterMs: 12_000,
  keepSessionMs: 165_000,
  restoreAfterMs: 15_000,
  maxKeyMs: 180_000,
  maxSessionMs: 180_000,
  retryMs: 5000,
  tickMs: 1000,
};

/** A pre-shared key. */
export interface HeldKey {
  /** 32 bytes. */
  readonly bytes: Uint8Array;
  /** Undefined for a random key, which the other end does not know. */
  readonly agreedAtMs: number | undefined;
}

/** A new key that no handshake has used yet. */
export interface Trial {
  readonly startedMs: number;
  /** Time of the last handshake before. */
  readonly handshakeMs: number;
  /** The last key before that was not on trial. */
  readonly former: HeldKey;
  /** Whether the session was restarted to force a handshake. */
  readonly isRenewed: boolean;
}

export interface KeyState {
  /** The key that WireGuard must have. */
  readonly current: HeldKey;
  readonly trial: Trial | undefined;
  /** No agreement starts before. */
  readonly notBeforeMs: number;
}

/** What the interface shows, at one time. */
export interface Observation {
  readonly nowMs: number;
  /** Time of the last handshake; 0 for none. wg reports whole seconds. */
  readonly handshakeMs: number;
}

/** What changed in a step: the key was proven by a handshake, or replaced; or the session must be restarted. */
export type KeyEvent = "proven" | "renew" | "restored" | "randomized";

export interface KeyStep {
  readonly state: KeyState;
  readonly event?: KeyEvent;
}

/** The time limits, and sources of randomness. */
export interface KeyRules extends KeyTiming {
  /** Returns 32 bytes. */
  readonly makeKey: () => Uint8Array;
  /** Returns a number from 0 to 1. */
  readonly jitter: () => number;
}

/** Starts with a random key. */
export function startKeys(rules: KeyRules): KeyState {
  return { current: makeRandom(rules), trial: undefined, notBeforeMs: 0 };
}

/**
 * Puts an agreed key on trial.
 *
 * @returns the event "renew" if no session exists that a handshake would replace
 */
export function acceptKey(
  state: KeyState,
  bytes: Uint8Array,
  observation: Observation,
  { maxSessionMs }: KeyRules,
): KeyStep {
  const { nowMs, handshakeMs } = observation;
  // A key that was itself on trial may not be the other end's.
  const former = state.trial?.former ?? state.current;
  if (state.trial !== undefined) wipe(state.current.bytes);
  const isRenewed = !hasSession(observation, maxSessionMs);
  const trial = { startedMs: nowMs, handshakeMs, former, isRenewed };
  const next = { ...state, current: { bytes, agreedAtMs: nowMs }, trial };
  return { state: next, ...(isRenewed && { event: "renew" }) };
}

/** Moves the state to the time of an observation. */
export function advanceKeys(state: KeyState, observation: Observation, rules: KeyRules): KeyStep {
  const { current, trial } = state;
  const { nowMs } = observation;
  if (trial === undefined)
    return current.agreedAtMs !== undefined && isExpired(current, nowMs, rules)
      ? { state: replaceKey(state, makeRandom(rules)), event: "randomized" }
      : { state };
  if (isProven(trial, observation)) {
    wipe(trial.former.bytes);
    return { state: { ...state, trial: undefined }, event: "proven" };
  }
  const onTrialMs = elapsed(trial.startedMs, nowMs);
  if (onTrialMs >= rules.restoreAfterMs) return restoreKey(state, nowMs, rules);
  const isKept = hasSession(observation, rules.keepSessionMs);
  if (onTrialMs < rules.renewAfterMs || trial.isRenewed || isKept) return { state };
  return { state: { ...state, trial: { ...trial, isRenewed: true } }, event: "renew" };
}

/** Ends a trial with the former key, or a random one if that is too old. */
export function restoreKey(state: KeyState, nowMs: number, rules: KeyRules): KeyStep {
  if (state.trial === undefined) return { state };
  const { former } = state.trial;
  const postponed = postponeAgreement(state, nowMs, rules);
  if (!isExpired(former, nowMs, rules)) return { state: replaceKey(postponed, former), event: "restored" };
  wipe(former.bytes);
  return { state: replaceKey(postponed, makeRandom(rules)), event: "randomized" };
}

/** Replaces the key by a random one, at the end of the agent. */
export function randomizeKey(state: KeyState, rules: KeyRules): KeyState {
  wipe(state.trial?.former.bytes);
  return replaceKey(state, makeRandom(rules));
}

/** Whether the peer should agree on a key now. */
export function isAgreementDue(
  { trial, notBeforeMs }: KeyState,
  observation: Observation,
  { maxSessionMs, agreeAfterMs, retryMs }: KeyRules,
): boolean {
  const { nowMs, handshakeMs } = observation;
  const waitMs = notBeforeMs - nowMs;
  // A longer wait than any that was chosen: the clock was set back.
  if (trial !== undefined || (waitMs > 0 && waitMs <= 1.5 * retryMs)) return false;
  return !hasSession(observation, maxSessionMs) || nowMs - handshakeMs >= agreeAfterMs;
}

/** Waits before the next agreement, from half to one and a half of `retryMs`, so that peers do not retry together. */
export function postponeAgreement(state: KeyState, nowMs: number, { retryMs, jitter }: KeyRules): KeyState {
  return { ...state, notBeforeMs: nowMs + retryMs * (0.5 + jitter()) };
}

function replaceKey(state: KeyState, current: HeldKey): KeyState {
  wipe(state.current.bytes);
  return { ...state, current, trial: undefined };
}

function makeRandom({ makeKey }: KeyRules): HeldKey {
  return { bytes: makeKey(), agreedAtMs: undefined };
}

/** A random key counts as expired: no handshake can need it. */
function isExpired({ agreedAtMs }: HeldKey, nowMs: number, { maxKeyMs }: KeyRules): boolean {
  return agreedAtMs === undefined || elapsed(agreedAtMs, nowMs) >= maxKeyMs;
}

/** A handshake after the start of the trial. The one before may have been recorded late, or rounded to its second. */
function isProven(trial: Trial, { handshakeMs }: Observation): boolean {
  return handshakeMs !== trial.handshakeMs && handshakeMs > trial.startedMs - 1000;
}

/** Whether a session exists that is younger than this. */
function hasSession({ nowMs, handshakeMs }: Observation, maxAgeMs: number): boolean {
  return handshakeMs > 0 && elapsed(handshakeMs, nowMs) < maxAgeMs;
}

/** If the clock was set back, everything before counts as over. A second of difference is rounding. */
function elapsed(fromMs: number, nowMs: number): number {
  return nowMs < fromMs - 1000 ? Number.POSITIVE_INFINITY : nowMs - fromMs;
}
