/** Which side checked what, its finding, and a one-sentence result. */

export interface Check {
  readonly by: "server" | "browser";
  /** The claim: "the signature over the message". */
  readonly claim: string;
  readonly holds: boolean;
  /** The finding in words: "valid". */
  readonly found: string;
}

/** Both sides' results for one claim. */
export interface Verdicts {
  readonly server: boolean;
  readonly browser: boolean;
}

/** A check by the server. */
export function reportServer(claim: string, holds: boolean, found = nameValidity(holds)): Check {
  return { by: "server", claim, holds, found };
}

/** A check by the browser. */
export function reportBrowser(claim: string, holds: boolean, found = nameValidity(holds)): Check {
  return { by: "browser", claim, holds, found };
}

/** A check by each side. */
export function reportBoth(claim: string, { server, browser }: Verdicts): readonly Check[] {
  return [reportServer(claim, server), reportBrowser(claim, browser)];
}

/** A comparison of two values in the browser. */
export function reportEqual(claim: string, isEqual: boolean): Check {
  return reportBrowser(claim, isEqual, isEqual ? "equal" : "different");
}

/** Checks that a server's answer contains no secret key. */
export function reportNoSecret(hasNone: boolean): Check {
  return reportBrowser("a secret key in the answer", hasNone, hasNone ? "none" : "found");
}

function nameValidity(holds: boolean): string {
  return holds ? "valid" : "not valid";
}

export function areBothValid({ server, browser }: Verdicts): boolean {
  return server && browser;
}

export function areBothInvalid({ server, browser }: Verdicts): boolean {
  return !server && !browser;
}

/** @param surprise what happened instead of the expected result; without a full stop */
export function sayExpected(isExpected: boolean, expected: string, surprise: string): string {
  return isExpected ? expected : `${surprise}, which should not happen.`;
}

/** The sentence for a value that both sides should accept. */
export function sayValid(verdicts: Verdicts, expected: string): string {
  return sayExpected(areBothValid(verdicts), expected, "Not both sides find it valid");
}

/** The sentence for a value that both sides should reject. */
export function sayInvalid(verdicts: Verdicts, expected: string): string {
  return sayExpected(areBothInvalid(verdicts), expected, "One side still finds it valid");
}
