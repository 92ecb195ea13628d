/** Two signatures of one message, and what was found of each. */
import { loadSigner } from "../../algorithms.ts";
import { ByteChange } from "../../parts/bytes-view.tsx";
import { bothSides, type Check, Checks } from "../../parts/checks.tsx";
import { type Halves, verifyEcdsa } from "./dual.ts";

/** The algorithm of the half that withstands a quantum computer. */
export const algorithm = "ML-DSA-65";
/** The names of both. */
export const halves = ["ECDSA", algorithm] as const;

/** Two signatures of a message, with their keys. */
export interface SignedPair {
  readonly data: Uint8Array;
  readonly ecdsaSignature: Uint8Array;
  readonly mldsaSignature: Uint8Array;
  readonly ecdsaPublicKey: Uint8Array;
  readonly mldsaPublicKey: Uint8Array;
}

export function toPair(data: Uint8Array, signed: Omit<SignedPair, "data">): SignedPair {
  const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = signed;
  return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
}

export async function verifyPair(pair: SignedPair): Promise<Halves> {
  const signer = await loadSigner(algorithm);
  return {
    ecdsaValid: await verifyEcdsa(pair.ecdsaSignature, pair.data, pair.ecdsaPublicKey),
    mldsaValid: signer.verify(pair.mldsaSignature, pair.data, pair.mldsaPublicKey),
  };
}

export function areBoth({ ecdsaValid, mldsaValid }: Halves): boolean {
  return ecdsaValid && mldsaValid;
}

export function halfChecks(server: Halves, browser: Halves): readonly Check[] {
  return [
    ...bothSides("the ECDSA signature", server.ecdsaValid, browser.ecdsaValid),
    ...bothSides(`the ${algorithm} signature`, server.mldsaValid, browser.mldsaValid),
  ];
}

function bothChecks(server: Halves & { readonly bothValid: boolean }, browser: Halves): readonly Check[] {
  return bothSides("both together", server.bothValid, areBoth(browser));
}

/** What came of changing one bit of a signature. */
export interface BrokenHalf {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
  readonly index: number;
  readonly server: Halves & { readonly bothValid: boolean };
  readonly browser: Halves;
}

export function BrokenHalfResult({ before, after, index, server, browser }: BrokenHalf) {
  return (
    <>
      <ByteChange before={before} after={after} index={index} />
      <Checks checks={[...halfChecks(server, browser), ...bothChecks(server, browser)]} />
    </>
  );
}

export function sayBroken(half: string, server: Halves, browser: Halves): string {
  const isSeen = (found: Halves): boolean =>
    half === "ECDSA" ? !found.ecdsaValid && found.mldsaValid : found.ecdsaValid && !found.mldsaValid;
  return isSeen(server) && isSeen(browser)
    ? `Both sides find the ${half} half not valid, and the other valid. Together, they are not valid.`
    : "The sides do not both name the half that is broken, which should not be.";
}
