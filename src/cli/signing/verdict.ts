/** Shared by raw verification and the signature formats of extensions. */
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { findVerifyingKey } from "./local.ts";

/** The trusted keys, any of which may have signed. */
export interface VerifyingKeys {
  readonly provider: CryptoProvider;
  readonly publicKeys: readonly PublicKey[];
}

/** Describes the signing key, for programs and for people; among several keys, by number. */
export function describeSigner(
  publicKeys: readonly PublicKey[],
  signer: PublicKey | undefined,
): { readonly fields: { readonly algorithm?: string; readonly keyNumber?: number }; readonly text: string } {
  const [only, another] = publicKeys;
  if (only !== undefined && another === undefined)
    return { fields: { algorithm: only.algorithm }, text: only.algorithm };
  if (signer === undefined) return { fields: {}, text: `none of ${publicKeys.length} keys` };
  const { algorithm } = signer;
  const keyNumber = publicKeys.indexOf(signer) + 1;
  return { fields: { algorithm, keyNumber }, text: `${algorithm}, key ${keyNumber} of ${publicKeys.length}` };
}

/** Finds the key that made a signature with an empty context. */
export function findSigner(
  { provider, publicKeys }: VerifyingKeys,
  signature: Uint8Array,
  chunks: AsyncIterable<Uint8Array>,
): Promise<PublicKey | undefined> {
  return findVerifyingKey(provider, publicKeys, signature, { chunks, context: new Uint8Array() });
}
