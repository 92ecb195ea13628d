import { refuse } from "../errors.ts";
import { type CredentialDeps, createCredentialCheck } from "./credentials.ts";
import type { IssuedToken, Issuer } from "./issuer.ts";
import type { UserStore } from "./users.ts";

/** The credentials of a log-in, and the call that they came with. */
export interface LogInInput {
  readonly username: string;
  readonly password: string;
  /** The network address of the caller. */
  readonly clientAddress: string;
  /** Ends with the call. */
  readonly signal?: AbortSignal | undefined;
  /** Header members of the token besides alg, typ and kid. */
  readonly header?: Readonly<Record<string, string>>;
}

/** Issues a token to a caller. @throws LOGIN_FAILED, LOGIN_LIMITED, RECORD_DAMAGED */
export type LogIn = (input: LogInInput) => Promise<IssuedToken>;

/** Issues a token for any name to any caller: on an open server, a token carries the name that the caller gave. */
export function logInAnyone(issuer: Issuer): LogIn {
  return ({ username, header }) => issuer.issue(username, header ? { header } : {});
}

/** Issues tokens to users who know their password; credentials.ts has the rules for those who do not. */
export function logInUsers({
  issuer,
  users,
  ...deps
}: CredentialDeps & { readonly issuer: Issuer; readonly users: UserStore }): LogIn {
  const check = createCredentialCheck(deps, {
    kind: "user",
    find: users.find,
    hashOf: ({ passwordHash }) => passwordHash,
  });
  return async ({ username, header, ...call }) => {
    const user = await check({ ...call, name: username });
    if (user === undefined) throw refuse("LOGIN_FAILED", "the username or the password is wrong");
    return issuer.issue(user.name, { generation: user.generation, ...(header && { header }) });
  };
}
