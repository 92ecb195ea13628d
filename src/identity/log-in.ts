import { refuse, refuseForNow } from "../errors.ts";
import type { IssuedToken, Issuer } from "./issuer.ts";
import type { KnownNetworks } from "./known-networks.ts";
import type { LogInRecords } from "./log-in-records.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { PasswordTurn } from "./password-lane.ts";
import type { StoredUser, UserStore } from "./users.ts";

/** Log-in credentials, and the call that they came with. */
export interface LogInInput {
  readonly username: string;
  readonly password: string;
  /** The caller's network address. */
  readonly clientAddress: string;
  readonly requestId: string;
  /** Aborts when the call ends. */
  readonly signal?: AbortSignal | undefined;
  /** Header members of the token besides alg, typ and kid. */
  readonly header?: Readonly<Record<string, string>>;
}

/**
 * Issues a token to a caller.
 *
 * @throws LOGIN_FAILED, LOGIN_LIMITED, RECORD_DAMAGED
 */
export type LogIn = (input: LogInInput) => Promise<IssuedToken>;

/**
 * Issues a token for any name to any caller: on an open server, a token carries the name that the caller
 * gave.
 */
export function logInAnyone(issuer: Issuer): LogIn {
  return ({ username, header }) => issuer.issue(username, header ? { header } : {});
}

/**
 * Issues tokens to users who know their password. An unknown user and a wrong password get the same answer
 * after the same time. Failures count against the name and the caller's networks. Beyond the limit, the
 * server rejects the name and the networks for the rest of the minute.
 *
 * On a network from which the user has logged in before, only that user's count at that network applies.
 * Failures elsewhere, or by other users there, do not lock the user out.
 */
export function logInUsers(deps: {
  readonly issuer: Issuer;
  readonly users: UserStore;
  readonly throttle: LoginThrottle;
  readonly known: KnownNetworks;
  readonly records: Pick<LogInRecords, "succeeded" | "failed">;
  /** Verifies as passwords.ts does, in turn with other checks. */
  readonly verifyPassword: (
    password: string,
    hash: string | undefined,
    turn: PasswordTurn,
  ) => Promise<boolean>;
  /** Lists the networks of an address, smallest first. */
  readonly listNetworks?: (address: string) => readonly string[];
}): LogIn {
  const {
    issuer,
    users,
    throttle,
    known,
    records,
    verifyPassword,
    listNetworks = (address) => [address],
  } = deps;
  const findUser = async (name: string, password: string, turn: PasswordTurn) => {
    const user: StoredUser | undefined = await users.find(name);
    return { user, isRight: await verifyPassword(password, user?.passwordHash, turn) };
  };
  return async ({ username, password, clientAddress, requestId, signal, header }) => {
    const origin = { name: username, clientAddress, requestId };
    const networks = listNetworks(clientAddress);
    const [network = clientAddress] = networks;
    const isKnown = known.has(username, network);
    const here = `user ${username} at ${network}`;
    const counted = [`user ${username}`, ...networks.map((name) => `network ${name}`), here];
    const waitMs = throttle.waitMs(isKnown ? [here] : counted);
    if (waitMs > 0) {
      records.failed("LOG_IN", { ...origin, reason: "LOGIN_LIMITED", isKnown: false });
      const seconds = Math.ceil(waitMs / 1000);
      throw refuseForNow("LOGIN_LIMITED", `too many log-ins failed; try again in ${seconds} seconds`, waitMs);
    }
    // Count before the result is known, so that concurrent attempts cannot exceed the limit.
    const forgetAttempt = throttle.count(counted);
    const turn = isKnown ? { network, knownName: username } : { network: networks.at(-1) ?? network };
    const checking = findUser(username, password, { knownName: undefined, signal, ...turn });
    const { user, isRight } = await checking.catch((error: unknown) => {
      forgetAttempt();
      throw error;
    });
    if (user === undefined || !isRight) {
      records.failed("LOG_IN", { ...origin, reason: "LOGIN_FAILED", isKnown: user !== undefined });
      throw refuse("LOGIN_FAILED", "the username or the password is wrong");
    }
    forgetAttempt();
    known.remember(user.name, network);
    await records.succeeded("LOG_IN", origin);
    return issuer.issue(user.name, { generation: user.generation, ...(header && { header }) });
  };
}
