/**
 * Checks passwords in a lane of their own: a hash takes as long as a thousand signatures, so neither should wait for
 * the other. Networks take turns in it.
 */
import { Lane } from "../crypto/lane.ts";
import { verifyPassword } from "./passwords.ts";

/** Whose turn a check takes. */
export interface PasswordTurn {
  /** The network that the password came from. */
  readonly network: string;
  /** The name that it is for, if its user has logged in from that network before; such checks go first. */
  readonly knownName: string | undefined;
  /** Ends with the call that asked: the passwords of callers who have gone are not checked. */
  readonly signal?: AbortSignal | undefined;
}

/** Checks passwords in turn. */
export interface PasswordLane {
  readonly lane: Lane;
  /** Tells whether a password is the one of a hash, as passwords.ts does. @throws CryptoBusyError */
  verify(password: string, hash: string | undefined, turn: PasswordTurn): Promise<boolean>;
}

/** What a lane is made of. */
export interface PasswordLaneOptions {
  /** Passwords that are checked at a time. */
  readonly maxChecks: number;
  /** Milliseconds that a network's passwords may have to wait. */
  readonly maxWaitMs: number;
}

/** Milliseconds that a check takes: see passwords.ts. */
const checkMs = 300;
/** Milliseconds of checks that a known user has ahead of others, and how many times their share. */
const knownCreditMs = 10 * checkMs;
const knownWeight = 10;

/** Makes the lane. */
export function createPasswordLane({ maxChecks, maxWaitMs }: PasswordLaneOptions): PasswordLane {
  const lane = new Lane({ hasRoom: ({ count }) => count < maxChecks, waitFor: (ms) => ms / maxChecks });
  return {
    lane,
    verify: (password, hash, { network, knownName, signal }) =>
      lane.run({
        caller: knownName === undefined ? network : `${knownName} at ${network}`,
        costMs: checkMs,
        leastMs: checkMs,
        limitMs: maxWaitMs,
        signal,
        creditMs: knownName === undefined ? 0 : knownCreditMs,
        weight: knownName === undefined ? 1 : knownWeight,
        start: () => verifyPassword(password, hash),
      }),
  };
}
