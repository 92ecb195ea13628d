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
  for (const [sequences, afterSequence] of [
    [[], 0],
    [[1], 0],
    [[9, 8, 7], 7],
    // Between them are entries of other users, whom the caller does not see.
    [[900, 500, 3], 499],
  ] as const) {
    it(`starts after entry ${afterSequence} if the caller sees ${sequences.join(", ") || "none"}`, async () => {
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
  }
});

describe("a key's life", () => {
  it("signs, and both sides find the signature valid", async () => {
    const caller = startKeyService();
    const key = await runStep(creating, caller, { alias: "release" });
    const { verdicts } = await runStep(signing, caller, { creating: key });
    expect(verdicts).toEqual({ server: true, browser: true });
  });

  it("detects that a different key signed", async () => {
    const caller = startKeyService();
    const { keyId } = await runStep(creating, caller, { alias: "release" });
    const key = { keyId, publicKey: ml_dsa65.keygen().publicKey };
    const { verdicts } = await runStep(signing, caller, { creating: key });
    expect(verdicts).toEqual({ server: true, browser: false });
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
  for (const [statement, isCheckpointSigned] of [
    ["entry 3", true],
    ["entry 4", false],
  ] as const) {
    it(`finds a checkpoint of “entry 3” that says “${statement}” ${isCheckpointSigned ? "" : "not "}signed`, async () => {
      const signature = ml_dsa65.sign(new TextEncoder().encode("entry 3"), secretKey);
      const caller = serve(KmsService, {
        verifyAuditLog: () => ({ checkpoint: { statement, signature, publicKey } }),
      });
      expect(await runStep(proving, caller, {})).toMatchObject({ isCheckpointSigned });
    });
  }

  it("finds no signature if no checkpoint exists", async () => {
    const caller = serve(KmsService, { verifyAuditLog: () => ({}) });
    expect(await runStep(proving, caller, {})).toMatchObject({ isCheckpointSigned: false });
  });
});
