/** What an end checks of a handshake before it uses the key. */
import { loadSigner } from "../../algorithms.ts";
import { type Check, equality } from "../../parts/checks.tsx";
import { buildTranscript, type TunnelEnd } from "../../tunnel-end.ts";
import { areEqual, toUtf8 } from "../../values.ts";

/** The gateway's half of a handshake, as it arrived. */
export interface GatewayHalf {
  readonly ciphertext: Uint8Array;
  readonly transcript: string;
  readonly signature: Uint8Array;
  readonly keyConfirmation: Uint8Array;
}

/** What this end knows by itself. */
export interface KnownFacts {
  readonly tunnelId: string;
  readonly publicKey: Uint8Array;
  readonly identityPublicKey: Uint8Array;
}

export interface Findings {
  /** Whether the transcript is the one that this end writes itself. */
  readonly isOurTranscript: boolean;
  /** Whether the gateway's identity signed the transcript that arrived. */
  readonly isSigned: boolean;
  /** Whether the other side has the same session key. */
  readonly isConfirmed: boolean;
}

export async function checkHandshake(
  { ciphertext, transcript, signature, keyConfirmation }: GatewayHalf,
  end: TunnelEnd,
  { tunnelId, publicKey, identityPublicKey }: KnownFacts,
): Promise<Findings> {
  const signer = await loadSigner("ML-DSA-65");
  return {
    isOurTranscript: transcript === (await buildTranscript(tunnelId, ciphertext, publicKey)),
    isSigned: signer.verify(signature, toUtf8(transcript), identityPublicKey),
    isConfirmed: areEqual(keyConfirmation, await end.confirm(transcript)),
  };
}

/** Each of the three alone can be had by somebody in between. */
export function isTrusted({ isOurTranscript, isSigned, isConfirmed }: Findings): boolean {
  return isOurTranscript && isSigned && isConfirmed;
}

export function toChecks({ isOurTranscript, isSigned, isConfirmed }: Findings): Check[] {
  return [
    equality("the transcript, against one of its own", isOurTranscript),
    { by: "browser", claim: "the gateway's signature over the transcript", holds: isSigned },
    equality("the key confirmation, against one of its own", isConfirmed),
  ];
}
