/** Which side checked what, what it found, and a sentence for the result. */

export interface Check {
  readonly by: "server" | "browser";
  /** The claim: "the signature over the message". */
  readonly claim: string;
  readonly holds: boolean;
  /** The finding in words: "valid". */
  readonly found: string;
}

/** The results of both sides for one claim. */
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

/** A comparison of two things in the browser. */
export function reportEqual(claim: string, isEqual: boolean): Check {
  return reportBrowser(claim, isEqual, isEqual ? "equal" : "different");
}

/** The check that a server's answer holds no secret key. */
export function reportNoSecret(hasNone: boolean): Check {
  return reportBrowser("a secret key in the answer", hasNone, hasNone ? "none" : "there is one");
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

/** @param surprise what happened if not what was expected; without the full stop */
export function sayExpected(isExpected: boolean, expected: string, surprise: string): string {
  return isExpected ? expected : `${surprise}, which should not happen.`;
}

/** The sentence for something that both sides should find valid. */
export function sayValid(verdicts: Verdicts, expected: string): string {
  return sayExpected(areBothValid(verdicts), expected, "The sides do not both find it valid");
}

/** The sentence for something that neither side should find valid. */
export function sayInvalid(verdicts: Verdicts, expected: string): string {
  return sayExpected(areBothInvalid(verdicts), expected, "One side still finds it valid");
}
