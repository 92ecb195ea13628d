/** Wallet signers: one with a key in the browser, the others with keys in the key service. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { Caller } from "../../caller.ts";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";

const { createKey, sign } = KmsService.method;

/** A person who signs with ML-DSA-65. */
export interface Signer {
  readonly name: string;
  readonly publicKey: Uint8Array;
  readonly address: string;
  /** Where the secret key is. */
  readonly place: string;
  readonly sign: (caller: Caller, message: Uint8Array) => Promise<Uint8Array>;
}

export async function makeBrowserSigner(name: string): Promise<Signer> {
  const key = await makeSigningKey("ML-DSA-65");
  const { publicKey } = key;
  return {
    name,
    publicKey,
    address: await deriveAddress(publicKey),
    place: "in your browser",
    sign: async (_caller, message) => key.sign(message),
  };
}

/** Creates a signer whose key is in the key service. */
export async function makeServiceSigner({ call }: Caller, name: string): Promise<Signer> {
  const { result } = await call(createKey, { alias: `governance, ${name}`, algorithm: "ML-DSA-65" });
  const { keyId = "", publicKey = new Uint8Array() } = result ?? {};
  return {
    name,
    publicKey,
    address: await deriveAddress(publicKey),
    place: "in the key service",
    sign: async (caller, message) => {
      const answer = await caller.call(sign, { keyId, data: message });
      return answer.result?.signature ?? new Uint8Array();
    },
  };
}
