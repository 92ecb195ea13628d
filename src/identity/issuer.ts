/** Issues and checks the server's tokens: ML-DSA JWTs (RFC 9964), with keys that survive a restart. */
import { randomUUID } from "node:crypto";
import { healthMs } from "../crypto/can-sign.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import { type PublicJwk, toPublicJwk } from "../crypto/jwk.ts";
import {
  type JwtVerification,
  signJwt,
  type TokenAlgorithm,
  type TokenType,
  tokenAlgorithms,
  verifyJwt,
} from "../crypto/jwt.ts";
import type { CryptoProvider } from "../crypto/provider.ts";
import { shareResult } from "../crypto/share-result.ts";
import { poll } from "../database/poll.ts";
import { lendSecret } from "../secrets/sealed-keys.ts";
import { type AccessClaims, readAccessClaims, type TokenContent, toAccessPayload } from "./access-claims.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import type { IssuerStore, NewIssuerKey } from "./issuer-store.ts";

/** Lifetime of a token, in seconds. */
const tokenLifetimeSeconds = 3600;

/** Maximum clock skew between servers that share a store, in milliseconds: one hour. */
const maxClockDifferenceMs = 3600 * 1000;

export interface IssuedToken {
  readonly token: string;
  readonly expiresAt: Date;
}

export interface TokenClaims {
  readonly subject: string;
  /** Purpose of the token, from its header: "grpc", "iot" or undefined. */
  readonly use: string | undefined;
  /**
   * The user's generation when the token was issued: see users.ts. Undefined for a token from an open server.
   */
  readonly generation: string | undefined;
  /** The key that signed it. */
  readonly keyId: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  /** Additional claims of an access token (RFC 9068); undefined for a log-in token. */
  readonly access?: AccessClaims;
}

export interface AccessTokenInput extends Omit<AccessClaims, "tokenId"> {
  readonly subject: string;
  /** As in TokenClaims. */
  readonly generation: string | undefined;
  /** Latest expiry of the token. */
  readonly notAfter?: Date | undefined;
}

export interface IssuedAccessToken extends IssuedToken {
  readonly issuedAt: Date;
  /** The `jti` claim. */
  readonly tokenId: string;
}

/** Content of a token besides its subject and times. */
export interface TokenExtras {
  /** Header members besides alg, typ and kid. */
  readonly header?: Readonly<Record<string, string>>;
  /** The `gen` claim: the user's generation. */
  readonly generation?: string;
}

/** What a check found: the claims, or the reason for rejection. */
export type TokenCheck =
  | ({ readonly ok: true } & TokenClaims)
  | {
      readonly ok: false;
      readonly reason: Extract<JwtVerification, { ok: false }>["reason"];
      readonly message: string;
    };

export type Issuer = Awaited<ReturnType<typeof openIssuer>>;

export interface IssuerDeps {
  readonly provider: CryptoProvider;
  readonly store: IssuerStore;
  readonly now: () => Date;
}

/** How an issuer signs access tokens. */
export interface AccessTokenOptions {
  /** The `iss` claim; undefined if the server issues no access tokens. */
  readonly issuerUrl: string | undefined;
  readonly algorithm: TokenAlgorithm;
}

/** A server without a URL issues no access tokens. */
const noAccessTokens: AccessTokenOptions = { issuerUrl: undefined, algorithm: "ML-DSA-65" };

/** Algorithm of log-in tokens. */
const loginAlgorithm = "ML-DSA-65";

/** Milliseconds between polls for keys that an operator created or revoked. */
const pollIntervalMs = 1000;

/** Opens the issuer: reads its keys, or creates the missing ones. */
export async function openIssuer(
  { provider, store, now }: IssuerDeps,
  { issuerUrl, algorithm: accessAlgorithm }: AccessTokenOptions = noAccessTokens,
) {
  const keys = new IssuerKeys({ provider, store, now, lifetimeSeconds: tokenLifetimeSeconds });
  await keys.refresh();
  for (const algorithm of new Set([loginAlgorithm, accessAlgorithm] as const))
    if (!keys.canSign(algorithm))
      await withFreshIssuerKey(provider, algorithm, (key) => store.addFirstKey(key, now()));
  await keys.findSigner(loginAlgorithm);
  const stopPolling = poll(
    { work: "issuer_keys", everyMs: pollIntervalMs, background: store.background },
    () => keys.refresh(),
  );

  /** Signs a token that is valid from now on. */
  const signToken = async (
    algorithm: TokenAlgorithm,
    { notAfter, ...form }: TokenForm,
    claims: TokenContent,
  ): Promise<Omit<IssuedAccessToken, "tokenId">> => {
    const { keyId, secretKey } = await keys.findSigner(algorithm);
    const times = readTimes(now(), notAfter);
    const token = await signJwt(provider, secretKey, { keyId, ...form, payload: { ...claims, ...times } });
    return { token, issuedAt: new Date(times.iat * 1000), expiresAt: new Date(times.exp * 1000) };
  };
  const verify = (token: string): Promise<JwtVerification> => {
    const publicKeys = new Map(keys.listLiving().map(({ record, publicKey }) => [record.keyId, publicKey]));
    return verifyJwt(provider, publicKeys, token, now());
  };

  return {
    /** Issues a token for a subject, valid for 3600 seconds from now. */
    async issue(subject: string, { header = {}, generation }: TokenExtras = {}): Promise<IssuedToken> {
      const claims = { sub: subject, ...(generation !== undefined && { gen: generation }) };
      const { token, expiresAt } = await signToken(loginAlgorithm, { header }, claims);
      return { token, expiresAt };
    },
    /** Issues an access token (RFC 9068), valid for at most 3600 seconds from now. */
    async issueAccessToken({ notAfter, ...input }: AccessTokenInput): Promise<IssuedAccessToken> {
      if (issuerUrl === undefined) throw new Error("an issuer without a URL issues no access tokens");
      const tokenId = randomUUID();
      const claims = toAccessPayload({ ...input, tokenId }, issuerUrl);
      return { ...(await signToken(accessAlgorithm, { type: "at+jwt", notAfter }, claims)), tokenId };
    },
    async check(token: string): Promise<TokenCheck> {
      let result = await verify(token);
      if (!result.ok && result.reason === "UNKNOWN_KEY") {
        // Another server may have signed it with a new key.
        await keys.refresh();
        result = await verify(token);
      }
      return result.ok ? readClaims(result, issuerUrl) : result;
    },
    /** Returns whether the server still accepts tokens signed by a key. */
    acceptsKey: (keyId: string): boolean => keys.listLiving().some(({ record }) => record.keyId === keyId),
    /**
     * Returns whether tokens can be signed and verified. It does both with the current key, at most once per
     * `healthMs` for all callers together.
     */
    isWorking: shareResult(healthMs, async () => {
      const message = new TextEncoder().encode("issuer self-test");
      try {
        const { secretKey } = keys.lastSigner(loginAlgorithm) ?? (await keys.findSigner(loginAlgorithm));
        const signature = await provider.system.sign(secretKey, message);
        return await provider.system.verify(secretKey.publicKey, message, signature);
      } catch {
        // Calls that need the key report the cause; the health check reports only the status.
        return false;
      }
    }),
    /** The public keys of tokens that may still be valid, with the current key first. */
    async publicJwks(): Promise<readonly PublicJwk[]> {
      await keys.refresh();
      return keys.listLiving().map(({ jwk }) => jwk);
    },
    /** Erases the keys, and waits for the poll in progress, which reads the store. */
    async close(): Promise<void> {
      const stopped = stopPolling();
      keys.erase();
      await stopped;
    },
  };
}

/** Parts of a token besides its claims. */
interface TokenForm {
  readonly type?: TokenType;
  readonly header?: Readonly<Record<string, string>>;
  /** Latest expiry of the token. */
  readonly notAfter?: Date | undefined;
}

/** The times of a token issued now. NumericDate counts whole seconds (RFC 7519, section 2). */
function readTimes(now: Date, notAfter: Date | undefined): { readonly iat: number; readonly exp: number } {
  const iat = Math.floor(now.getTime() / 1000);
  const lastSecond = Math.floor((notAfter?.getTime() ?? Number.POSITIVE_INFINITY) / 1000);
  return { iat, exp: Math.min(iat + tokenLifetimeSeconds, lastSecond) };
}

function readClaims(
  { header, payload, type }: Extract<JwtVerification, { ok: true }>,
  issuerUrl: string | undefined,
): TokenCheck {
  const { sub, iat, exp, gen } = payload;
  const { use } = header;
  // Every token of this issuer has an issue time.
  if (typeof iat !== "number") return { ok: false, reason: "MALFORMED", message: "iat must be a number" };
  const access = type === "at+jwt" ? readAccessClaims(payload, issuerUrl) : undefined;
  if (typeof access === "string") return { ok: false, reason: "MALFORMED", message: access };
  return {
    ok: true,
    subject: sub,
    use: typeof use === "string" ? use : undefined,
    generation: typeof gen === "string" ? gen : undefined,
    keyId: String(header.kid),
    issuedAt: new Date(iat * 1000),
    expiresAt: new Date(exp * 1000),
    ...(access && { access }),
  };
}

/**
 * Creates new signing keys, one per signing algorithm. Tokens signed by the previous keys stay valid until
 * they expire.
 *
 * @param revoke revokes all tokens of earlier keys, within a second on every server; use it for a leaked key
 * @returns the keyId of the new key for log-in tokens
 */
export async function rotateIssuerKey(
  { provider, store, now }: IssuerDeps,
  { revoke }: { readonly revoke: boolean },
): Promise<string> {
  const current = await store.listKeys(now());
  const signing = current
    .filter(({ retiredAt }) => retiredAt === undefined)
    .map(({ algorithm }) => algorithm);
  const rotate = (algorithm: TokenAlgorithm): Promise<string> =>
    withFreshIssuerKey(provider, algorithm, async (key) => {
      const at = now();
      // A key that was retired one token lifetime ago has no valid tokens, even by other servers' clocks.
      const endedMs = tokenLifetimeSeconds * 1000 + maxClockDifferenceMs;
      const retiredAt = revoke ? new Date(at.getTime() - endedMs) : at;
      await store.replaceKey(key, at, retiredAt);
      return key.keyId;
    });
  for (const algorithm of tokenAlgorithms)
    if (algorithm !== loginAlgorithm && signing.includes(algorithm)) await rotate(algorithm);
  return rotate(loginAlgorithm);
}

function withFreshIssuerKey<T>(
  provider: CryptoProvider,
  algorithm: TokenAlgorithm,
  use: (key: NewIssuerKey) => Promise<T>,
): Promise<T> {
  return withFreshKeyPair(provider, algorithm, ({ publicKey, secretKey }) => {
    const { kid: keyId } = toPublicJwk(publicKey);
    return lendSecret(secretKey, (seed) => use({ keyId, publicKey, seed }));
  });
}
