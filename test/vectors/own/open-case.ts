/** Reads the values of a case by name; a missing value, or one of a wrong type, is an error. */
import type { CryptoProvider, PublicKey, SecretKey } from "../../../src/crypto/provider.ts";
import type { Value, Values, VectorCase, VectorKey, VectorSet } from "./vector-set.ts";

interface Fields {
  text(name: string): string;
  bytes(name: string): Uint8Array;
}

/** A packet of a handshake case. */
interface PacketValue {
  /** The side that seals it. */
  readonly from: string;
  readonly valid: boolean;
  readonly plaintext: string;
  readonly packet: Uint8Array;
}

/** A case whose values in `input` and `result` are read by name. */
export interface OpenCase extends Fields {
  number(name: string): number;
  isNull(name: string): boolean;
  flag(name: string): boolean;
  readonly result: Fields;
  packets(): readonly PacketValue[];
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
    number: (name) => requireType(input, name, (value) => typeof value === "number"),
    flag: (name) => requireType(input, name, (value) => typeof value === "boolean"),
    isNull: (name) => input[name] === null,
    result: openFields(result),
    packets: () => {
      const packets = requireType(result, "packets", (value): value is readonly Values[] =>
        Array.isArray(value),
      );
      return packets.map((packet) => ({
        from: openFields(packet).text("from"),
        valid: packet.valid === true,
        plaintext: openFields(packet).text("plaintext"),
        packet: openFields(packet).bytes("packet"),
      }));
    },
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

function openFields(values: Values): Fields {
  const text = (name: string): string => requireType(values, name, (value) => typeof value === "string");
  return { text, bytes: (name) => Uint8Array.fromHex(text(name)) };
}

function requireType<T extends Value>(
  values: Values,
  name: string,
  isRight: (value: Value | undefined) => value is T,
): T {
  const value = values[name];
  if (!isRight(value)) throw new TypeError(`${name} is missing or has a wrong type`);
  return value;
}
