import { createHash } from "node:crypto";
import { p256 } from "@noble/curves/nist.js";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import {
  breaking,
  breakingComposite,
  composing,
  deploying,
  halves,
  mirroring,
  rewriting,
  signing,
  stripping,
  verifying,
} from "../../page/stories/contracts/page.tsx";
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
const message = await runStep(signing, caller, { text: "grüße" });
const bothValid = { ecdsaValid: true, mldsaValid: true };

describe("deploying", () => {
  it("finds the code's hash and signature right", async () => {
    const deployed = await runStep(deploying, caller, { code: "pay(100)", name: "Escrow" });
    expect(deployed).toMatchObject({ isHashEqual: true, isSigned: true });
  });
});

describe("rewriting", () => {
  for (const [code, changed] of [
    ["pay(100) or (10)", "pay(100) or (90)"],
    ["pay()", "pay(!"],
  ] as const) {
    it(`turns “${code}” into “${changed}”, and finds that it was not signed`, async () => {
      const deployed = await runStep(deploying, caller, { code, name: "Escrow" });
      const found = await runStep(rewriting, caller, { deploying: deployed });
      expect(new TextDecoder().decode(found.change.after)).toBe(changed);
      expect(found).toMatchObject({ isHashEqual: false, isSigned: false });
    });
  }
});

describe("two signatures", () => {
  it("are verified separately", async () => {
    const { browser } = await runStep(verifying, caller, { signing: message });
    expect(browser).toEqual(bothValid);
  });

  it("stay valid with different bytes if the ECDSA signature is mirrored", async () => {
    const { original, mirrored, browser } = await runStep(mirroring, caller, { signing: message });
    expect(browser).toEqual(bothValid);
    expect(mirrored).not.toEqual(original);
  });
});

describe("the composite", () => {
  it("is found valid", async () => {
    const { browser } = await runStep(composing, caller, { signing: message });
    expect(browser).toEqual(bothValid);
  });

  it("has no half that is a signature by itself", async () => {
    const { browser } = await runStep(stripping, caller, { signing: message });
    expect(browser).toEqual({ ecdsaValid: true, mldsaValid: false });
  });
});

for (const one of [breaking, breakingComposite]) {
  describe(one.title, () => {
    for (const half of halves) {
      it(`finds the ${half} half broken, even if the server disagrees`, async () => {
        const broken = await runStep(one, caller, { signing: message, half });
        const isEcdsa = half === "ECDSA";
        expect(broken.browser).toEqual({ ecdsaValid: !isEcdsa, mldsaValid: isEcdsa });
        expect(one.says(broken)).toContain("which should not happen");
        const { browser } = broken;
        expect(one.says({ ...broken, server: { ...browser, bothValid: false } })).toContain(
          `the ${half} half`,
        );
      });
    }
  });
}
