import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import * as story from "../../page/stories/sign/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

/** A server that calls every signature valid. */
const caller = serve(PqcService, {
  signData({ data, algorithm }) {
    const pair = generateKeyPairSync(algorithm.toLowerCase() as "ml-dsa-65");
    return {
      signature: sign(null, data, pair.privateKey),
      publicKey: pair.publicKey.export({ format: "raw-public" }),
    };
  },
  verifySignature: () => ({ valid: true }),
});
const signWith = (algorithm: string) => runStep(story.signing, caller, { text: "grüße", algorithm });
const signed = await signWith("ML-DSA-44");

describe("verifying", () => {
  const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"];
  it.each(algorithms)("finds a signature of %s valid on both sides", async (algorithm) => {
    const { verdicts } = await runStep(story.verifying, caller, { signing: await signWith(algorithm) });
    expect(verdicts).toEqual({ server: true, browser: true });
  });
});

it.each([
  ["2419", 2419],
  ["99999", 2419],
  ["-1", 0],
  ["1.9", 1],
  ["no number", 0],
])("breaking for “%s” changes byte %i, and the browser finds it invalid", async (place, index) => {
  const { change, verdicts } = await runStep(story.breaking, caller, { signing: signed, place });
  expect([change.index, verdicts]).toEqual([index, { server: true, browser: false }]);
});

it("rewriting changes the message's last byte, and the browser finds the signature invalid", async () => {
  const { change, verdicts } = await runStep(story.rewriting, caller, { signing: signed });
  expect([change.index, verdicts]).toEqual([6, { server: true, browser: false }]);
});
