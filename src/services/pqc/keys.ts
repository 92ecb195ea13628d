/** Reads the keys of requests, and says which field is at fault. */
import type { Algorithm } from "../../crypto/algorithms.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { refuseField } from "../../errors.ts";

/** How a request gives a public key: raw, or as PEM. Exactly one is set, which the proto's rules see to. */
export interface PublicKeyFields {
  readonly publicKey: Uint8Array;
  readonly publicKeyPem: string;
}

/** @throws KEY_INVALID naming publicKey or publicKeyPem */
export function readPublicKey(
  provider: CryptoProvider,
  algorithm: Algorithm,
  fields: PublicKeyFields,
): PublicKey {
  const isPem = fields.publicKeyPem !== "";
  try {
    return provider.importPublicKey(
      algorithm,
      isPem ? { pem: fields.publicKeyPem } : { raw: fields.publicKey },
    );
  } catch (error) {
    if (!(error instanceof CryptoError)) throw error;
    throw refuseField(isPem ? "publicKeyPem" : "publicKey", error.message, "KEY_INVALID");
  }
}
