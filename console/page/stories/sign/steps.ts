/** The steps of a signature: the server signs, and both sides verify. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { loadSigner } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import type { Failure } from "../../failure.ts";
import { changeByte, toUtf8 } from "../../values.ts";

const { signData, verifySignature } = PqcService.method;

/** A message with its signature and all that is needed to verify it. */
export interface SignedMessage {
  readonly data: Uint8Array;
  readonly algorithm: string;
  readonly signature: Uint8Array;
  readonly publicKey: Uint8Array;
}

export async function signMessage(
  { call }: Caller,
  { text, algorithm }: { readonly text: string; readonly algorithm: string },
): Promise<SignedMessage> {
  const data = toUtf8(text);
  const { signature, publicKey } = await call(signData, { data, algorithm });
  return { data, algorithm, signature, publicKey };
}

/** @returns what each side found, and the milliseconds that the browser took */
export async function verifyOnBothSides({ call }: Caller, signed: SignedMessage) {
  const { valid: server } = await call(verifySignature, signed);
  const signer = await loadSigner(signed.algorithm);
  const startedAt = performance.now();
  const browser = signer.verify(signed.signature, signed.data, signed.publicKey);
  return { verdicts: { server, browser }, ms: performance.now() - startedAt };
}

/** @param place the byte of the signature that changes, as the reader typed it; the last, if there are fewer */
export async function breakSignature(caller: Caller, signed: SignedMessage, place: string) {
  const index = Math.min(Math.max(0, Math.trunc(Number(place)) || 0), signed.signature.length - 1);
  const change = changeByte(signed.signature, index);
  const { verdicts } = await verifyOnBothSides(caller, { ...signed, signature: change.after });
  return { change, verdicts };
}

/** Changes the last letter of the message. */
export async function changeMessage(caller: Caller, signed: SignedMessage) {
  const change = changeByte(signed.data, signed.data.length - 1);
  const { verdicts } = await verifyOnBothSides(caller, { ...signed, data: change.after });
  return { change, verdicts };
}

export function cutSignature({ callRefused }: Caller, signed: SignedMessage): Promise<Failure> {
  return callRefused(verifySignature, { ...signed, signature: signed.signature.slice(0, -1) });
}
