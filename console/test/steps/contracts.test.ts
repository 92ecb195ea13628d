import { createHash } from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import * as story from "../../page/stories/contracts/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

const mldsa = ml_dsa65.keygen();
const ecdsa = p256.keygen();
const ecdsaPublicKey = p256.getPublicKey(ecdsa.secretKey, false);
const prefix = "CompositeAlgorithmSignatures2025";
const label = "COMPSIG-MLDSA65-ECDSA-P256-SHA512";

function signEcdsa(message: Uint8Array): Uint8Array {
  return Uint8Array.from(p256.sign(message, ecdsa.secretKey, { format: "der" }));
}

/** A composite as a server would sign it (draft-ietf-lamps-pq-composite-sigs, section 3.2). */
function signComposite(message: Uint8Array): Uint8Array {
  const hash = createHash("sha512").update(message).digest();
  const represented = Buffer.concat([Buffer.from(prefix), Buffer.from(label), Buffer.of(0), hash]);
  const context = Buffer.from(label);
  return Uint8Array.of(
    ...ml_dsa65.sign(represented, mldsa.secretKey, { context }),
    ...signEcdsa(represented),
  );
}

/** A server that calls everything valid. */
const caller = serve(DappService, {
  deployContract({ code }) {
    const hash = createHash("sha256").update(code).digest();
    const signature = ml_dsa65.sign(hash, mldsa.secretKey);
    return { codeHash: hash.toString("hex"), signature, publicKey: mldsa.publicKey };
  },
  dualSign: ({ data }) => ({
    ecdsaSignature: signEcdsa(data),
    mldsaSignature: ml_dsa65.sign(data, mldsa.secretKey),
    ecdsaPublicKey,
    mldsaPublicKey: mldsa.publicKey,
    compositeSignature: signComposite(data),
    compositePublicKey: Uint8Array.of(...mldsa.publicKey, ...ecdsaPublicKey),
  }),
  dualVerify: () => ({ ecdsaValid: true, mldsaValid: true, bothValid: true }),
});
const message = await runStep(story.signing, caller, { text: "grüße" });

describe("deployed code", () => {
  const deploy = (code: string) => runStep(story.deploying, caller, { code, name: "Escrow" });

  it.each([
    ["pay(100) or (10)", "pay(100) or (90)"],
    ["pay()", "pay(!"],
  ])("turned from “%s” into “%s” was not signed", async (code, changed) => {
    const found = await runStep(story.rewriting, caller, { deploying: await deploy(code) });
    expect(new TextDecoder().decode(found.change.after)).toBe(changed);
    expect(found).toMatchObject({ isHashEqual: false, isSigned: false });
  });
});

it("two signatures are no signatures by themselves if they are halves of a composite", async () => {
  const { browser } = await runStep(story.stripping, caller, { signing: message });
  expect(browser).toEqual({ ecdsaValid: true, mldsaValid: false });
});

describe.each([story.breaking, story.breakingComposite])("$title", (one) => {
  it.each(story.halves)("finds the %s half broken, even if the server disagrees", async (half) => {
    const broken = await runStep(one, caller, { signing: message, half });
    const { browser } = broken;
    expect(browser).toEqual({ ecdsaValid: half !== "ECDSA", mldsaValid: half === "ECDSA" });
    expect(one.says(broken)).toContain("which should not happen");
    const agreed = one.says({ ...broken, server: { ...browser, bothValid: false } });
    expect(agreed).toContain(`the ${half} half`);
  });
});
