/** Issues and checks the server's tokens: ML-DSA-65 JWTs (RFC 9964), with a key that survives a restart. */

import { healthMs } from "../crypto/can-sign.ts";
import { withFreshKeyPair } from "../crypto/fresh-key-pair.ts";
import { type PublicJwk, toPublicJwk } from "../crypto/jwk.ts";
import { type JwtVerification, signJwt, verifyJwt } from "../crypto/jwt.ts";
import type { CryptoProvider, PublicKey, SecretKey } from "../crypto/provider.ts";
import { shareResult } from "../crypto/share-result.ts";
import { poll } from "../database/poll.ts";
import { importSealedKey, lendSecret } from "../secrets/sealed-keys.ts";
import type { IssuerKeyRecord, IssuerStore, NewIssuerKey } from "./issuer-store.ts";

/** The lifetime of a token in seconds. */
export const tokenLifetimeSeconds = 3600;

/** A token and its expiry time. */
export interface IssuedToken {
  readonly token: string;
  readonly expiresAt: Date;
}

/** The content of a verified token. */
export interface TokenClaims {
  readonly subject: string;
  /** The purpose of the token from its header: "grpc", "iot", or undefined. */
  readonly use: string | undefined;
  /** The generation of the user at issue: see users.ts. Undefined for a token of an open server. */
  readonly generation: string | undefined;
  /** Names the key that signed it. */
  readonly keyId: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
}

/** The content of a token besides its subject and its times. */
export interface TokenExtras {
  /** Header members besides alg, typ and kid. */
  readonly header?: Readonly<Record<string, string>>;
  /** The claim `gen`: the generation of the user. */
  readonly generation?: string;
}

/** The outcome of a check: the claims, or why there are none. */
export type TokenCheck =
  | ({ readonly ok: true } & TokenClaims)
  | {
      readonly ok: false;
      readonly reason: Extract<JwtVerification, { ok: false }>["reason"];
      readonly message: string;
    };

/** Issues and checks tokens. */
export interface Issuer {
  /** Issues a token for a subject, valid from now for 3600 seconds. */
  issue(subject: string, extras?: TokenExtras): Promise<IssuedToken>;
  check(token: string): Promise<TokenCheck>;
  /** Tells whether the server still accepts tokens that a key signed. */
  acceptsKey(keyId: string): boolean;
  /**
   * Tells whether tokens can be signed and verified now. It does both with the current key, at most once in `healthMs`
   * for all callers.
   */
  isWorking(): Promise<boolean>;
  /** The public keys of tokens that may still be valid; the current key comes first. */
  publicJwks(): Promise<readonly PublicJwk[]>;
  close(): void;
}

/** The dependencies of an issuer. */
export interface IssuerDeps {
  readonly provider: CryptoProvider;
  readonly store: IssuerStore;
  readonly now: () => Date;
}

/** A key of the issuer, ready for use. */
interface IssuerKey {
  readonly record: IssuerKeyRecord;
  readonly publicKey: PublicKey;
  readonly jwk: PublicJwk;
}

/** Milliseconds between polls for keys that an operator created or revoked. */
const pollIntervalMs = 1000;

/** Opens the issuer: reads its keys, or creates the first key in an empty store. */
export async function openIssuer({ provider, store, now }: IssuerDeps): Promise<Issuer> {
  let keys: readonly IssuerKey[] = [];
  let signer: { readonly keyId: string; readonly secretKey: SecretKey } | undefined;

  const refresh = async (): Promise<void> => {
    const known = new Map(keys.map((key) => [key.record.keyId, key]));
    const records = await store.listKeys(new Date(now().getTime() - tokenLifetimeSeconds * 1000));
    keys = records.map((record) => {
      const { publicKey = importPublicKey(provider, record), jwk = toPublicJwk(provider, publicKey) } =
        known.get(record.keyId) ?? {};
      return { record, publicKey, jwk };
    });
  };
  /** Lists the current key, and retired keys whose last token has not expired. */
  const listLiving = (): readonly IssuerKey[] =>
    keys.filter(({ record: { retiredAt } }) => {
      return retiredAt === undefined || retiredAt.getTime() + tokenLifetimeSeconds * 1000 > now().getTime();
    });
  /** Finds the current key. It runs for each token, so that no retired key signs one. */
  const findSigner = async (): Promise<NonNullable<typeof signer>> => {
    await refresh();
    const signing = keys.find(({ record }) => record.retiredAt === undefined);
    if (signing === undefined) throw new Error("the store has no key that signs tokens");
    const { record } = signing;
    if (signer?.keyId !== record.keyId) {
      // Do not erase the previous key here: calls may be signing with it.
      const seed = await store.openSeed(record.keyId);
      if (seed === undefined) {
        // Another program may have retired it since the keys were read; then there is a new key.
        const before = record.keyId;
        await refresh();
        if (keys.some((key) => key.record.keyId === before && key.record.retiredAt === undefined))
          throw new Error(`the store has no seed of the issuing key ${before}`);
        return findSigner();
      }
      const opened = {
        keyId: record.keyId,
        secretKey: await importSealedKey(provider, "ML-DSA-65", seed, record.publicKey),
      };
      signer = opened;
      return opened;
    }
    return signer;
  };

  await refresh();
  if (!keys.some(({ record }) => record.retiredAt === undefined))
    await withFreshIssuerKey(provider, (key) => store.addFirstKey(key, now()));
  await findSigner();
  const stopPolling = poll(pollIntervalMs, refresh);

  return {
    async issue(subject, { header = {}, generation } = {}) {
      const { keyId, secretKey } = await findSigner();
      // NumericDate counts whole seconds (RFC 7519, section 2).
      const issuedAtSeconds = Math.floor(now().getTime() / 1000);
      const expiresAtSeconds = issuedAtSeconds + tokenLifetimeSeconds;
      const payload = {
        sub: subject,
        iat: issuedAtSeconds,
        exp: expiresAtSeconds,
        ...(generation !== undefined && { gen: generation }),
      };
      const token = await signJwt(provider, secretKey, { keyId, header, payload });
      return { token, expiresAt: new Date(expiresAtSeconds * 1000) };
    },
    async check(token) {
      const verify = () => {
        const publicKeys = new Map(listLiving().map(({ record, publicKey }) => [record.keyId, publicKey]));
        return verifyJwt(provider, publicKeys, token, now());
      };
      let result = await verify();
      if (!result.ok && result.reason === "UNKNOWN_KEY") {
        // Another server may have signed it with a new key.
        await refresh();
        result = await verify();
      }
      if (!result.ok) return result;
      const { sub, iat, exp, gen } = result.payload;
      const { use } = result.header;
      // Every token of this issuer has its issue time.
      if (typeof iat !== "number") return { ok: false, reason: "MALFORMED", message: "iat must be a number" };
      return {
        ok: true,
        subject: sub,
        use: typeof use === "string" ? use : undefined,
        generation: typeof gen === "string" ? gen : undefined,
        keyId: String(result.header.kid),
        issuedAt: new Date(iat * 1000),
        expiresAt: new Date(exp * 1000),
      };
    },
    acceptsKey: (keyId) => listLiving().some(({ record }) => record.keyId === keyId),
    isWorking: shareResult(healthMs, async () => {
      const message = new TextEncoder().encode("self-test of the issuer");
      try {
        const { secretKey } = signer ?? (await findSigner());
        const signature = await provider.system.sign(secretKey, message);
        return await provider.system.verify(secretKey.publicKey, message, signature);
      } catch {
        // The calls that need the key report the cause; this one reports only whether it works.
        return false;
      }
    }),
    async publicJwks() {
      await refresh();
      return listLiving().map(({ jwk }) => jwk);
    },
    close() {
      stopPolling();
      signer?.secretKey.erase();
    },
  };
}

/**
 * Creates a new key that signs from now on. Tokens of the previous key stay valid until they expire.
 *
 * @param revoke revokes the tokens of all earlier keys, within a second on every server. Use it for a leaked key.
 * @returns the keyId of the new key.
 */
export async function rotateIssuerKey(
  { provider, store, now }: IssuerDeps,
  { revoke }: { readonly revoke: boolean },
): Promise<string> {
  return withFreshIssuerKey(provider, async (key) => {
    const at = now();
    // A key that was retired a token lifetime ago has no valid tokens.
    const retiredAt = revoke ? new Date(at.getTime() - tokenLifetimeSeconds * 1000) : at;
    await store.replaceKey(key, at, retiredAt);
    return key.keyId;
  });
}

function withFreshIssuerKey<T>(provider: CryptoProvider, use: (key: NewIssuerKey) => Promise<T>): Promise<T> {
  return withFreshKeyPair(provider, "ML-DSA-65", ({ publicKey, secretKey }) => {
    const { kid: keyId } = toPublicJwk(provider, publicKey);
    return lendSecret(secretKey, (seed) => use({ keyId, publicKey, seed }));
  });
}

function importPublicKey(provider: CryptoProvider, record: IssuerKeyRecord): PublicKey {
  return provider.importPublicKey("ML-DSA-65", { raw: record.publicKey });
}
