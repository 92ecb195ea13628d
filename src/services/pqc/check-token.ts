import type { CryptoProvider } from "../../crypto/provider.ts";
import { type Accounts, findHolder } from "../../identity/authenticate.ts";
import type { Issuer, TokenClaims } from "../../identity/issuer.ts";
import { type VerifyInput, verify } from "./verify.ts";

/** A token to check, or otherwise a signature. */
export interface CheckTokenInput extends Omit<VerifyInput, "algorithm"> {
  readonly token: string;
}

/** The outcome of a check; for a valid token, also what it says and the roles of its subject. */
export interface CheckTokenResult extends Partial<Pick<TokenClaims, "subject" | "use" | "expiresAt">> {
  readonly valid: boolean;
  readonly reason?: string;
  readonly roles?: string[];
}

/** The dependencies of the check of tokens. */
export interface CheckTokenDeps {
  readonly provider: CryptoProvider;
  readonly issuer: Issuer;
  readonly accounts: Accounts;
  /** An audience that an access token must name. */
  readonly issuerUrl: string | undefined;
}

/**
 * Checks a token of this server, or an ML-DSA-65 signature. An invalid one is an answer, with the reason.
 *
 * @throws KEY_INVALID, LENGTH_INVALID for a malformed key or signature
 */
export async function checkToken(
  { provider, issuer, accounts, issuerUrl }: CheckTokenDeps,
  input: CheckTokenInput,
): Promise<CheckTokenResult> {
  if (input.token === "") {
    const valid = await verify(provider, { ...input, algorithm: "ML-DSA-65" });
    return valid ? { valid } : { valid, reason: "the signature does not verify" };
  }
  const check = await issuer.check(input.token);
  if (!check.ok) return { valid: false, reason: check.message };
  if (check.access && !check.access.audiences.some((audience) => audience === issuerUrl))
    return { valid: false, reason: "the token is for other servers: see its aud" };
  const holder = await findHolder(accounts, check);
  if (holder === undefined) {
    const reason = check.access
      ? "the token was revoked"
      : "the user of the token was removed or has a new password";
    return { valid: false, reason };
  }
  const { subject, use, role, expiresAt } = holder;
  return { valid: true, subject, use, roles: [role], expiresAt };
}
