/** The steps of a key exchange: the browser makes the key pair, the server the ciphertext. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { loadKem } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { areEqual, changeByte } from "../../values.ts";

export interface KeyPair {
  readonly algorithm: string;
  readonly publicKey: Uint8Array;
  readonly secretKey: Uint8Array;
}

/** The values in transit, and the secret that the server shows for comparison. */
export interface Exchange {
  readonly algorithm: string;
  readonly publicKey: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly sharedSecret: Uint8Array;
}

export async function makeKeyPair(algorithm: string) {
  const kem = await loadKem(algorithm);
  const startedAt = performance.now();
  const { publicKey, secretKey } = kem.keygen();
  return { algorithm, publicKey, secretKey, ms: performance.now() - startedAt };
}

export async function encapsulate({ call }: Caller, { algorithm, publicKey }: KeyPair): Promise<Exchange> {
  const answer = await call(PqcService.method.exchangeKeys, { algorithm, publicKey });
  return { algorithm, publicKey, ciphertext: answer.encapsulatedKey, sharedSecret: answer.sharedSecret };
}

/** Opens the ciphertext, and compares the secret with the server's. */
export async function decapsulate(
  { algorithm, secretKey }: KeyPair,
  { ciphertext, sharedSecret: theirs }: Pick<Exchange, "ciphertext" | "sharedSecret">,
) {
  const kem = await loadKem(algorithm);
  const startedAt = performance.now();
  const ours = kem.decapsulate(ciphertext, secretKey);
  return { ours, theirs, isEqual: areEqual(ours, theirs), ms: performance.now() - startedAt };
}

/** Changes one bit of the ciphertext before the browser opens it. */
export async function decapsulateChanged(keyPair: KeyPair, { ciphertext, sharedSecret }: Exchange) {
  const change = changeByte(ciphertext, Math.floor(ciphertext.length / 2));
  return { change, ...(await decapsulate(keyPair, { ciphertext: change.after, sharedSecret })) };
}
