/** Reads the values of a case by name. */
import type { CryptoProvider, PublicKey, SecretKey } from "../../../src/crypto/provider.ts";
import type { Values, VectorCase, VectorKey, VectorSet } from "./vector-set.ts";

/** Values in text or hexadecimal; a missing one is an error. */
interface Fields {
  text(name: string): string;
  bytes(name: string): Uint8Array;
}

/** A case whose values in `input` and `result` are read by name. */
export interface OpenCase extends Fields {
  readonly input: Values;
  readonly result: Fields;
  /** The packets of a handshake. */
  readonly packets: readonly Values[];
  /** The public key named by a member of `input`. */
  publicKey(provider: CryptoProvider, name: string): PublicKey;
  /** The secret key named by a member of `input`. */
  secretKey(provider: CryptoProvider, name: string): Promise<SecretKey>;
}

/** Opens a case of a set. */
export function openCase({ keys }: VectorSet, { input, result }: VectorCase): OpenCase {
  const fields = openFields(input);
  const keyOf = (name: string): VectorKey => {
    const key = keys[fields.text(name)];
    if (key === undefined) throw new TypeError(`unknown key ${fields.text(name)}`);
    return key;
  };
  return {
    ...fields,
    input,
    result: openFields(result),
    packets: (result.packets ?? []) as readonly Values[],
    publicKey: (provider, name) => {
      const { algorithm, publicKey } = keyOf(name);
      return provider.importPublicKey(algorithm, { raw: Uint8Array.fromHex(publicKey) });
    },
    secretKey: (provider, name) => {
      const { algorithm, seed } = keyOf(name);
      return provider.importSecretKey(algorithm, { seed: Uint8Array.fromHex(seed) });
    },
  };
}

export function openFields(values: Values): Fields {
  const text = (name: string): string => {
    const value = values[name];
    if (typeof value === "string") return value;
    throw new TypeError(`${name} is missing or no text`);
  };
  return { text, bytes: (name) => Uint8Array.fromHex(text(name)) };
}
