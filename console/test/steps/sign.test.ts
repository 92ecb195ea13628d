import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { breaking, cutting, rewriting, signing, verifying } from "../../page/stories/sign/page.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();

/** A server that calls every signature of the right length valid. */
const caller = serve(PqcService, {
  signData: ({ data }) => ({ signature: ml_dsa65.sign(data, secretKey), publicKey }),
  verifySignature({ signature }) {
    if (signature.length !== 3309) throw refusalOf("LENGTH_INVALID");
    return { valid: true };
  },
});
const signed = await runStep(signing, caller, { text: "grüße", algorithm: "ML-DSA-65" });

describe("verifying", () => {
  it("finds the signature valid on both sides", async () => {
    const { verdicts } = await runStep(verifying, caller, { signing: signed });
    expect(verdicts).toEqual({ server: true, browser: true });
  });
});

describe("breaking", () => {
  for (const [place, index] of [
    ["0", 0],
    ["3308", 3308],
    ["99999", 3308],
    ["-1", 0],
    ["1.9", 1],
    ["no number", 0],
  ] as const) {
    it(`changes byte ${index} for “${place}”, and the browser finds it invalid`, async () => {
      const { change, verdicts } = await runStep(breaking, caller, { signing: signed, place });
      expect(change.index).toBe(index);
      expect(verdicts).toEqual({ server: true, browser: false });
    });
  }
});

describe("rewriting", () => {
  it("changes the message's last byte, and the browser finds the signature invalid", async () => {
    const { change, verdicts } = await runStep(rewriting, caller, { signing: signed });
    expect(change.index).toBe(signed.data.length - 1);
    expect(verdicts).toEqual({ server: true, browser: false });
  });
});

describe("cutting", () => {
  it("shows the refusal", async () => {
    const refusal = await runStep(cutting, caller, { signing: signed });
    expect(refusal).toMatchObject({ reason: "LENGTH_INVALID" });
  });
});
