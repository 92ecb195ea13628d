/**
 * Checks passwords in their own lane: a hash takes as long as a thousand signatures, so neither should wait
 * for the other. Networks take turns in the lane.
 */
import { Lane } from "../crypto/lane.ts";
import { verifyPassword } from "./passwords.ts";

/** Whose turn a check takes. */
export interface PasswordTurn {
  /** The network that the password came from. */
  readonly network: string;
  /** The user name, if the user has logged in from that network before; such checks go first. */
  readonly knownName: string | undefined;
  /** Aborts when the call ends: the lane does not check passwords for callers that have disconnected. */
  readonly signal?: AbortSignal | undefined;
}

export interface PasswordLane {
  readonly lane: Lane;
  /**
   * Returns whether a password matches a hash, as passwords.ts does.
   *
   * @throws CryptoBusyError
   */
  verify(password: string, hash: string | undefined, turn: PasswordTurn): Promise<boolean>;
}

export interface PasswordLaneOptions {
  /** Maximum concurrent password checks. */
  readonly maxChecks: number;
  /** Maximum milliseconds that a network's passwords may wait. */
  readonly maxWaitMs: number;
}

/** Duration of a check, in milliseconds: see passwords.ts. */
const checkMs = 300;
/** A known user's head start over others, in milliseconds of checks, and the multiple of their share. */
const knownCreditMs = 10 * checkMs;
const knownWeight = 10;

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
