/** The checks of a handshake before an end uses the key. */
import { verifyHere } from "../../algorithms.ts";
import { type Check, reportBrowser, reportEqual } from "../../checks.ts";
import { buildTranscript, type TunnelEnd } from "../../tunnel-end.ts";
import { areEqual, toUtf8 } from "../../values.ts";

/** The gateway's half of a handshake, as it arrived. */
export interface GatewayHalf {
  readonly ciphertext: Uint8Array;
  readonly transcript: string;
  readonly signature: Uint8Array;
  readonly keyConfirmation: Uint8Array;
}

/** The facts that this end knows without the other side. */
export interface KnownFacts {
  readonly tunnelId: string;
  readonly publicKey: Uint8Array;
  readonly identityPublicKey: Uint8Array;
}

export interface Findings {
  /** Whether the transcript equals the one that this end writes itself. */
  readonly isOurTranscript: boolean;
  /** Whether the gateway's identity signed the transcript that arrived. */
  readonly isSigned: boolean;
  /** Whether the other side has the same session key. */
  readonly isConfirmed: boolean;
}

/** Checks the gateway's half before this end uses the key. */
export async function checkHandshake(
  { ciphertext, transcript, signature, keyConfirmation }: GatewayHalf,
  end: TunnelEnd,
  { tunnelId, publicKey, identityPublicKey }: KnownFacts,
): Promise<Findings> {
  return {
    isOurTranscript: transcript === (await buildTranscript(tunnelId, ciphertext, publicKey)),
    isSigned: await verifyHere("ML-DSA-65", signature, toUtf8(transcript), identityPublicKey),
    isConfirmed: areEqual(keyConfirmation, await end.confirm(transcript)),
  };
}

/** All three must hold, because an intermediary can fulfil any single one. */
export function isTrusted({ isOurTranscript, isSigned, isConfirmed }: Findings): boolean {
  return isOurTranscript && isSigned && isConfirmed;
}

export function reportHandshake({ isOurTranscript, isSigned, isConfirmed }: Findings): readonly Check[] {
  return [
    reportEqual("the transcript, compared with its own", isOurTranscript),
    reportBrowser("the gateway's signature over the transcript", isSigned),
    reportEqual("the key confirmation, compared with its own", isConfirmed),
  ];
}

/** The sentence for a handshake. */
export function sayTrusted(findings: Findings, expected: string): string {
  return isTrusted(findings) ? expected : "This handshake is not valid. Your browser does not use its key.";
}

/** A transcript in its parts: the tunnel, the ciphertext, and the hash of the key that it was made for. */
export function readTranscript(text: string) {
  const [tunnelId = "", ciphertext = "", keyHash = ""] = text.split(":");
  return { tunnelId, ciphertext, keyHash };
}
