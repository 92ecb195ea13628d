/** The home page's sentences about its signature. */
import { formatNumber } from "../values.ts";
import { countBytes, signatureParts } from "./cells.ts";
import { type Findings, type HomeSignature, isAccepted, isRejected } from "./signature.ts";

/** The state that the caption describes. */
interface Shown {
  readonly signed: Pick<HomeSignature, "by" | "failure"> | undefined;
  readonly flipped: ReadonlySet<number>;
  readonly findings: Findings | undefined;
  readonly isChecking: boolean;
}

/** Describes it in a sentence or two, which screen readers announce. */
export function writeCaption({ signed, flipped, findings, isChecking }: Shown): string {
  if (signed === undefined || findings === undefined) return "Generating a key pair and signing the message.";
  if (isChecking) return "Checking …";
  if (flipped.size === 0) {
    const state = signed.by === "server" ? tellAccepted(findings) : tellAlone(signed);
    return `${state} Try to forge it: click any square.`;
  }
  const bits = `${formatNumber(8 * countBytes(signatureParts))} bits`;
  const flips =
    flipped.size === 1
      ? `You flipped one of ${bits}, in byte ${formatNumber([...flipped][0] ?? 0)}.`
      : `You flipped ${formatNumber(flipped.size)} of ${bits}.`;
  if (!isRejected(findings)) return `${flips} The two sides disagree.`;
  return `${flips} ${findings.server === false ? "Both sides reject" : "Your browser rejects"} the whole signature.`;
}

function tellAccepted(findings: Findings): string {
  if (!isAccepted(findings)) return "The two sides disagree.";
  return findings.server === true ? "Server and browser accept it." : "Your browser accepts it.";
}

function tellAlone({ failure }: Pick<HomeSignature, "failure">): string {
  return failure === undefined
    ? "Your browser signed and verified, because calls require a log-in."
    : "Your browser signed and verified, because the server did not.";
}
