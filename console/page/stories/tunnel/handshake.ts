/** A handshake's checks in words, and the tunnel end that results from a trusted handshake. */
import type { Findings, TunnelEnd } from "../../../../src/client/tunnel-end.ts";
import { type Check, reportBrowser, reportEqual } from "../../checks.ts";
import { Failure } from "../../failure.ts";
import { judge, type Verdict } from "../../parts/diagrams/sequence.ts";

/** The browser's current end of the tunnel: created by a handshake, replaced by a rekey. */
export interface EndHolder {
  current: TunnelEnd | undefined;
}

/** @throws Failure if no handshake produced a key that the browser trusts */
export function requireEnd({ current }: EndHolder): TunnelEnd {
  if (current !== undefined) return current;
  throw new Failure(
    "SESSION_MISSING",
    "BROWSER",
    "Your browser has no trusted session key. Register and do the handshake again.",
  );
}

/** All three must hold, because an intermediary can satisfy any single one. */
export function isTrusted({ isOurTranscript, isSigned, isConfirmed }: Findings): boolean {
  return isOurTranscript && isSigned && isConfirmed;
}

export function reportHandshake({ isOurTranscript, isSigned, isConfirmed }: Findings): readonly Check[] {
  return [
    reportEqual("the transcript, compared with your browser's own", isOurTranscript),
    reportBrowser("the gateway's signature over the transcript", isSigned),
    reportEqual("the key confirmation, compared with your browser's own", isConfirmed),
  ];
}

/** The sentence about a handshake. */
export function sayTrusted(findings: Findings, expected: string): string {
  return isTrusted(findings) ? expected : "This handshake is not valid. Your browser does not use its key.";
}

/** Names a handshake's first problem. */
export function judgeHandshake(findings: Findings | undefined, yes: string): Verdict | undefined {
  if (findings === undefined) return undefined;
  const fault = !findings.isOurTranscript
    ? "refused: it is not about your key"
    : !findings.isSigned
      ? "refused: not the gateway's signature"
      : "refused: different session key";
  return judge(isTrusted(findings), yes, fault);
}

/** A transcript's parts: the tunnel, the ciphertext, and the hash of the key that it was made for. */
export function readTranscript(text: string) {
  const [tunnelId = "", ciphertext = "", keyHash = ""] = text.split(":");
  return { tunnelId, ciphertext, keyHash };
}

/**
 * Browsers provide AES only on secure origins: https and localhost.
 *
 * @throws Failure elsewhere
 */
export function requireSecureOrigin(): void {
  // The type does not include undefined, because it assumes a secure origin.
  const subtle: SubtleCrypto | undefined = crypto.subtle;
  if (subtle !== undefined) return;
  throw new Failure(
    "ORIGIN_INSECURE",
    "BROWSER",
    "Your browser only encrypts on secure pages. Open this page over https, or on the server's own machine.",
  );
}
