/** Opens the sealed secrets of a store, to know what must not be found anywhere. */
import { type Algorithm, algorithms, isMlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import type { Store } from "../../src/store/store.ts";
import { openTestStore } from "../support/open-store.ts";
import type { Secret } from "./secrets.ts";

/** Opens the store of a data directory while the server uses it. */
export async function withStore<T>(
  dataDir: string,
  provider: CryptoProvider,
  use: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openTestStore(dataDir, provider);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** A secret as the database stores it. */
export interface Sealed {
  readonly identity: string;
  /** Its random parts: the wrapped data key and the ciphertext. */
  readonly blobs: readonly Uint8Array[];
}

/** Reads all sealed secrets without opening them. */
export async function readSealed({ reader }: Store): Promise<Sealed[]> {
  const rows = await reader.selectFrom("sealed_secrets").selectAll().execute();
  return rows.map(({ identity, wrapped_data_key, ciphertext }) => ({
    identity,
    blobs: [wrapped_data_key, ciphertext],
  }));
}

/** Opens all sealed secrets, and expands the keys of the key service and of the store itself. */
export async function openSecrets(store: Store, provider: CryptoProvider): Promise<Secret[]> {
  const keys = await store.reader.selectFrom("kms_keys").select(["key_id", "algorithm"]).execute();
  const algorithmOf = (identity: string): Algorithm | undefined => {
    if (/^(issuer_keys\/|store\/audit-signing-key$)/.test(identity)) return "ML-DSA-65";
    // Stored keys have a known algorithm; for other services, only the seed is searched for.
    return keys.find(({ key_id }) => identity.includes(key_id))?.algorithm as Algorithm | undefined;
  };
  const secrets: Secret[] = [];
  for (const { identity } of await readSealed(store)) {
    const secret = await store.readSecret(identity);
    const algorithm = algorithmOf(identity);
    if (secret === undefined) throw new Error(`${identity} no longer exists`);
    if (algorithm) secrets.push(...(await expand(provider, algorithm, identity, secret)));
    if (algorithm === undefined || hasSeed(algorithm)) secrets.push({ name: identity, bytes: secret });
  }
  return secrets;
}

function hasSeed(algorithm: Algorithm): boolean {
  return algorithms[algorithm].seedBytes !== undefined;
}

/** The secret parts of an expanded key. */
async function expand(
  provider: CryptoProvider,
  algorithm: Algorithm,
  identity: string,
  secret: Uint8Array,
): Promise<Secret[]> {
  const expanded = hasSeed(algorithm)
    ? (await provider.importSecretKey(algorithm, { seed: secret })).exportRaw()
    : secret;
  return secretParts(algorithm, expanded.length).map(([start, end]) => ({
    name: `${identity}, bytes ${start} to ${end} of its expanded form`,
    bytes: expanded.subarray(start, end),
  }));
}

/** The rest of an expanded key is its public key, or a hash of it. */
function secretParts(algorithm: Algorithm, length: number): [number, number][] {
  // FIPS 204, algorithm 24: rho, K, tr, then the vectors.
  if (isMlDsaAlgorithm(algorithm))
    return [
      [32, 64],
      [128, length],
    ];
  // FIPS 203, algorithm 16: the key of K-PKE (384 k bytes of 768 k + 96), the public key, its hash, then z.
  if (algorithm.startsWith("ML-KEM"))
    return [
      [0, (length - 96) / 2],
      [length - 32, length],
    ];
  // FIPS 205, section 9.1: SK.seed, SK.prf, PK.seed, PK.root.
  return [[0, length / 2]];
}
