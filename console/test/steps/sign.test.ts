import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { breaking, cutting, rewriting, signing, verifying } from "../../page/stories/sign/page.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

/** A server that calls every signature valid, except short ones. */
const caller = serve(PqcService, {
  signData({ data, algorithm }) {
    const pair = generateKeyPairSync(algorithm.toLowerCase() as "ml-dsa-65");
    return {
      signature: sign(null, data, pair.privateKey),
      publicKey: pair.publicKey.export({ format: "raw-public" }),
    };
  },
  verifySignature({ signature }) {
    if (signature.length < 2420) throw refusalOf("LENGTH_INVALID");
    return { valid: true };
  },
});
const signWith = (algorithm: string) => runStep(signing, caller, { text: "grüße", algorithm });
const signed = await signWith("ML-DSA-44");

describe("verifying", () => {
  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"])(
    "finds a signature of %s valid on both sides",
    async (algorithm) => {
      const { verdicts } = await runStep(verifying, caller, { signing: await signWith(algorithm) });
      expect(verdicts).toEqual({ server: true, browser: true });
    },
  );
});

describe("breaking", () => {
  it.each([
    ["2419", 2419],
    ["99999", 2419],
    ["-1", 0],
    ["1.9", 1],
    ["no number", 0],
  ])("for “%s” changes byte %i, and the browser finds it invalid", async (place, index) => {
    const { change, verdicts } = await runStep(breaking, caller, { signing: signed, place });
    expect([change.index, verdicts]).toEqual([index, { server: true, browser: false }]);
  });
});

describe("rewriting", () => {
  it("changes the message's last byte, and the browser finds the signature invalid", async () => {
    const { change, verdicts } = await runStep(rewriting, caller, { signing: signed });
    expect([change.index, verdicts]).toEqual([6, { server: true, browser: false }]);
  });
});

describe("cutting", () => {
  it("shows the refusal", async () => {
    const refusal = await runStep(cutting, caller, { signing: signed });
    expect(refusal).toMatchObject({ reason: "LENGTH_INVALID" });
  });
});
