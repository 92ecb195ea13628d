import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { creating, destroying, proving, rotating, signing, watching } from "../../page/stories/keys/page.tsx";
import { refusalOf, runStep, serve } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();

/** A key service with one key, which calls every signature valid. */
function startKeyService() {
  let status = "ACTIVE";
  return serve(KmsService, {
    createKey: () => ({ result: { keyId: "key-1", publicKey, status } }),
    getKey: () => ({ result: { keyId: "key-1", status } }),
    sign({ data }) {
      if (status !== "ACTIVE") throw refusalOf("KEY_STATE_INVALID");
      return { result: { signature: ml_dsa65.sign(data, secretKey) } };
    },
    verify() {
      if (status === "DESTROYED") throw refusalOf("KEY_STATE_INVALID");
      return { result: { valid: true } };
    },
    rotateKey() {
      status = "ROTATED";
      return { newKey: { keyId: "key-2", status: "ACTIVE" } };
    },
    destroyKey() {
      status = "DESTROYED";
      return { newStatus: status };
    },
  });
}

describe("watching", () => {
  it.each<[number[], number]>([
    [[], 0],
    [[1], 0],
    [[9, 8, 7], 7],
    // Between them are entries of other users, whom the caller does not see.
    [[900, 500, 3], 499],
  ])("of the entries %j starts after %i", async (sequences, afterSequence) => {
    const caller = serve(KmsService, {
      getAuditLog: ({ pageSize, newestFirst }) => ({
        auditLog: (newestFirst ? sequences : sequences.toReversed())
          .slice(0, pageSize)
          .map((sequence) => ({ sequence })),
        totalSize: sequences.length,
      }),
    });
    const started = await runStep(watching, caller, {}, { open: () => {} });
    expect(started).toEqual({ totalSize: sequences.length, afterSequence });
  });
});

describe("a key's life", () => {
  it.each([
    ["signs, and both sides find the signature valid", publicKey, true],
    ["detects that a different key signed", ml_dsa65.keygen().publicKey, false],
  ])("%s", async (_what, publicKey, browser) => {
    const { verdicts } = await runStep(signing, startKeyService(), {
      creating: { keyId: "key-1", publicKey },
    });
    expect(verdicts).toEqual({ server: true, browser });
  });

  it("shows the refusal to sign after rotation, and to verify after destruction", async () => {
    const caller = startKeyService();
    const key = await runStep(creating, caller, { alias: "release" });
    const signed = await runStep(signing, caller, { creating: key });
    const rotated = await runStep(rotating, caller, { creating: key, signing: signed });
    expect(rotated).toMatchObject({ oldKey: { status: "ROTATED" }, newKey: { keyId: "key-2" }, valid: true });
    expect(rotated.refusal.reason).toBe("KEY_STATE_INVALID");
    const { newStatus } = await runStep(destroying, caller, { creating: key, signing: signed });
    expect(newStatus).toBe("DESTROYED");
  });
});

describe("proving", () => {
  const signature = ml_dsa65.sign(new TextEncoder().encode("entry 3"), secretKey);
  it.each([
    [{ statement: "entry 3", signature, publicKey }, true],
    [{ statement: "entry 4", signature, publicKey }, false],
    [undefined, false],
  ])("finds whether the checkpoint is signed: %#", async (checkpoint, isCheckpointSigned) => {
    const caller = serve(KmsService, { verifyAuditLog: () => ({ ...(checkpoint && { checkpoint }) }) });
    expect(await runStep(proving, caller, {})).toMatchObject({ isCheckpointSigned });
  });
});
