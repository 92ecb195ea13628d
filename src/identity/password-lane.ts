/**
 * Checks passwords in their own lane: a hash takes as long as a thousand signatures, so neither should wait for the
 * other. Networks take turns in the lane.
 */
import { Lane } from "../crypto/lane.ts";
import { verifyPassword } from "./passwords.ts";

/** The caller whose turn a check takes. */
export interface PasswordTurn {
  /** The network that the password came from. */
  readonly network: string;
  /** The user name, if the user has logged in from that network before; such checks go first. */
  readonly knownName: string | undefined;
  /** Aborts with the call: the lane does not check passwords of callers who have disconnected. */
  readonly signal?: AbortSignal | undefined;
}

/** Checks passwords in turn. */
export interface PasswordLane {
  readonly lane: Lane;
  /** Tells whether a password matches a hash, like passwords.ts. @throws CryptoBusyError */
  verify(password: string, hash: string | undefined, turn: PasswordTurn): Promise<boolean>;
}

/** The options of a lane. */
export interface PasswordLaneOptions {
  /** The most passwords to check at the same time. */
  readonly maxChecks: number;
  /** The longest time that a network's passwords may wait, in milliseconds. */
  readonly maxWaitMs: number;
}

/** Milliseconds that a check takes: see passwords.ts. */
const checkMs = 300;
/** The head start of a known user over others in milliseconds of checks, and the factor on their share. */
const knownCreditMs = 10 * checkMs;
const knownWeight = 10;

/** Creates the lane. */
export function createPasswordLane({ maxChecks, maxWaitMs }: PasswordLaneOptions): PasswordLane {
  const lane = new Lane({ hasRoom: ({ count }) => count < maxChecks, waitFor: (ms) => ms / maxChecks });
  return {
    lane,
    verify: (password, hash, { network, knownName, signal }) =>
      lane.run({
        caller: knownName === undefined ? network : `${knownName} at ${network}`,
        costMs: checkMs,
        limitMs: maxWaitMs,
        signal: () => signal,
        creditMs: knownName === undefined ? 0 : knownCreditMs,
        weight: knownName === undefined ? 1 : knownWeight,
        start: () => verifyPassword(password, hash),
      }),
  };
}
