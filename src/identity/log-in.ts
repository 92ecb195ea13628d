import { refuse, refuseForNow } from "../errors.ts";
import type { IssuedToken, Issuer } from "./issuer.ts";
import { createKnownNetworks } from "./known-networks.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import type { PasswordTurn } from "./password-lane.ts";
import type { StoredUser, UserStore } from "./users.ts";

/** Who wants a token. */
export interface LogInInput {
  readonly username: string;
  readonly password: string;
  /** The address that the call came from. */
  readonly clientAddress: string;
  /** Ends with the call. */
  readonly signal?: AbortSignal | undefined;
  /** Header members of the token beside alg, typ and kid. */
  readonly header?: Readonly<Record<string, string>>;
}

/** Gives somebody a token. @throws LOGIN_FAILED, LOGIN_LIMITED, RECORD_DAMAGED */
export type LogIn = (input: LogInInput) => Promise<IssuedToken>;

/** Gives a token of any name to anyone: while the server is open, a token says what its caller said. */
export function logInAnyone(issuer: Issuer): LogIn {
  return ({ username, header }) => issuer.issue(username, header ? { header } : {});
}

/**
 * Gives tokens to users who know their password. Somebody unknown and a wrong password are answered alike, in the same
 * time. Failures count for the name and for the networks that they came from, and beyond the limit the server listens
 * to none of these for the rest of a minute.
 *
 * A network from which a user has logged in before has a count of its own for that name, and only that count limits
 * it: failures elsewhere, and of others there, do not lock the user out.
 */
export function logInUsers(parts: {
  readonly issuer: Issuer;
  readonly users: UserStore;
  readonly attempts: LoginThrottle;
  /** As passwords.ts does it, where and when there is room for it. */
  readonly verifyPassword: (
    password: string,
    hash: string | undefined,
    turn: PasswordTurn,
  ) => Promise<boolean>;
  /** Names the networks of an address, the smallest first. */
  readonly listNetworks?: (address: string) => readonly string[];
}): LogIn {
  const { issuer, users, attempts, verifyPassword, listNetworks = (address) => [address] } = parts;
  const known = createKnownNetworks();
  const findUser = async (
    name: string,
    password: string,
    turn: PasswordTurn,
  ): Promise<StoredUser | undefined> => {
    const user = await users.find(name);
    return (await verifyPassword(password, user?.passwordHash, turn)) ? user : undefined;
  };
  return async ({ username, password, clientAddress, signal, header }) => {
    const networks = listNetworks(clientAddress);
    const [network = clientAddress] = networks;
    const isKnown = known.has(username, network);
    const here = `user ${username} at ${network}`;
    const counted = [`user ${username}`, ...networks.map((name) => `network ${name}`), here];
    const waitMs = attempts.waitMs(isKnown ? [here] : counted);
    if (waitMs > 0)
      throw refuseForNow("LOGIN_LIMITED", "too many log-ins failed; wait before the next one", waitMs);
    // Counted before it is known: of many that are tried at once, only so many are.
    attempts.count(counted);
    const turn = isKnown ? { network, knownName: username } : { network: networks.at(-1) ?? network };
    const user = await findUser(username, password, { knownName: undefined, signal, ...turn }).catch(
      (error: unknown) => {
        attempts.forget(counted);
        throw error;
      },
    );
    if (user === undefined) throw refuse("LOGIN_FAILED", "the username or the password is wrong");
    attempts.forget(counted);
    known.remember(user.name, network);
    return issuer.issue(user.name, { generation: user.generation, ...(header && { header }) });
  };
}
