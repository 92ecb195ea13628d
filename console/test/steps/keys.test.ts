import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import * as story from "../../page/stories/keys/page.tsx";
import { runStep, serve } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();

/** A key service that calls every signature valid. */
const keyService = serve(KmsService, {
  sign: ({ data }) => ({ result: { signature: ml_dsa65.sign(data, secretKey) } }),
  verify: () => ({ result: { valid: true } }),
});

it.each<[number[], number]>([
  [[], 0],
  [[1], 0],
  [[9, 8, 7], 7],
  // Between them are entries of other users, whom the caller does not see.
  [[900, 500, 3], 499],
])("watching of the entries %j starts after %i", async (sequences, afterSequence) => {
  const caller = serve(KmsService, {
    getAuditLog: ({ pageSize, newestFirst }) => ({
      auditLog: (newestFirst ? sequences : sequences.toReversed())
        .slice(0, pageSize)
        .map((sequence) => ({ sequence })),
      totalSize: sequences.length,
    }),
  });
  const started = await runStep(story.watching, caller, {}, { open: () => {} });
  expect(started).toEqual({ totalSize: sequences.length, afterSequence });
});

it.each([
  ["signs, and both sides find the signature valid", publicKey, true],
  ["detects that a different key signed", ml_dsa65.keygen().publicKey, false],
])("signing %s", async (_what, publicKey, browser) => {
  const given = { creating: { keyId: "key-1", publicKey } };
  const { verdicts } = await runStep(story.signing, keyService, given);
  expect(verdicts).toEqual({ server: true, browser });
});

describe("proving", () => {
  const signature = ml_dsa65.sign(new TextEncoder().encode("entry 3"), secretKey);
  it.each([
    [{ statement: "entry 3", signature, publicKey }, true],
    [{ statement: "entry 4", signature, publicKey }, false],
    [undefined, false],
  ])("finds whether the checkpoint is signed: %#", async (checkpoint, isCheckpointSigned) => {
    const caller = serve(KmsService, { verifyAuditLog: () => ({ ...(checkpoint && { checkpoint }) }) });
    expect(await runStep(story.proving, caller, {})).toMatchObject({ isCheckpointSigned });
  });
});
