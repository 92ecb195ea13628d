/** Checks names with passwords, and slows down those who guess. */
import { refuseForNow } from "../errors.ts";
import type { KnownNetworks } from "./known-networks.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { PasswordTurn } from "./password-lane.ts";

/** A name with its password, and the call that they came with. */
export interface Credentials {
  readonly name: string;
  readonly password: string;
  /** The network address of the caller. */
  readonly clientAddress: string;
  /** Ends with the call. */
  readonly signal?: AbortSignal | undefined;
}

/** What checks of credentials share. */
export interface CredentialDeps {
  readonly throttle: LoginThrottle;
  readonly known: KnownNetworks;
  /** Verifies like passwords.ts, in turn with other checks. */
  readonly verifyPassword: (
    password: string,
    hash: string | undefined,
    turn: PasswordTurn,
  ) => Promise<boolean>;
  /** Names the networks of an address, the smallest first. */
  readonly listNetworks?: (address: string) => readonly string[];
}

/** Whose credentials to check. */
export interface CredentialOwners<T> {
  /** Such as "user"; counts apart from other kinds. */
  readonly kind: string;
  readonly find: (name: string) => Promise<T | undefined>;
  readonly hashOf: (owner: T) => string;
}

/** @returns the owner, or undefined for an unknown name or a wrong password @throws LOGIN_LIMITED, RECORD_DAMAGED */
export type CheckCredentials<T> = (credentials: Credentials) => Promise<T | undefined>;

/**
 * Creates a check. An unknown name and a wrong password get the same answer after the same time. Failures count for
 * the name and for the networks of the caller. Beyond the limit, the name and the networks are refused for the rest of
 * a minute.
 *
 * For a network from which the owner has succeeded before, only the count of that owner at that network applies.
 * Failures elsewhere, or of other owners there, do not lock the owner out.
 */
export function createCredentialCheck<T>(
  { throttle, known, verifyPassword, listNetworks = (address) => [address] }: CredentialDeps,
  { kind, find, hashOf }: CredentialOwners<T>,
): CheckCredentials<T> {
  const verify = async (name: string, password: string, turn: PasswordTurn): Promise<T | undefined> => {
    const owner = await find(name);
    return (await verifyPassword(password, owner && hashOf(owner), turn)) ? owner : undefined;
  };
  return async ({ name, password, clientAddress, signal }) => {
    const networks = listNetworks(clientAddress);
    const [network = clientAddress] = networks;
    const fullName = `${kind} ${name}`;
    const isKnown = known.has(fullName, network);
    const here = `${fullName} at ${network}`;
    const counted = [fullName, ...networks.map((one) => `network ${one}`), here];
    const waitMs = throttle.waitMs(isKnown ? [here] : counted);
    if (waitMs > 0)
      throw refuseForNow("LOGIN_LIMITED", "too many log-ins failed; wait before the next attempt", waitMs);
    // Count before the result is known, so that concurrent attempts cannot exceed the limit.
    throttle.count(counted);
    const turn = isKnown ? { network, knownName: fullName } : { network: networks.at(-1) ?? network };
    const owner = await verify(name, password, { knownName: undefined, signal, ...turn }).catch(
      (error: unknown) => {
        throttle.forget(counted);
        throw error;
      },
    );
    if (owner === undefined) return undefined;
    throttle.forget(counted);
    known.remember(fullName, network);
    return owner;
  };
}
