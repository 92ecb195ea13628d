import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ml_dsa65 } from "@noble/post-quantum/ml-dsa.js";
import { describe, expect, it } from "vitest";
import { AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import {
  createManagedKey,
  destroyManagedKey,
  prepareWatch,
  receiveEntry,
  rotateManagedKey,
  signAndVerify,
  verifyLog,
} from "../../page/stories/keys/steps.ts";
import { createFakeCaller } from "./fake-caller.ts";

const { publicKey, secretKey } = ml_dsa65.keygen();

/** A key service with one key, which calls every signature valid. */
function startKeyService() {
  let status = "ACTIVE";
  return createFakeCaller(({ service }) =>
    service(KmsService, {
      createKey: () => ({ result: { keyId: "key-1", publicKey, status } }),
      getKey: () => ({ result: { keyId: "key-1", status } }),
      sign({ data }) {
        if (status !== "ACTIVE") throw new ConnectError(status, Code.FailedPrecondition);
        return { result: { signature: ml_dsa65.sign(data, secretKey) } };
      },
      verify() {
        if (status === "DESTROYED") throw new ConnectError(status, Code.FailedPrecondition);
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
    }),
  );
}

describe("prepareWatch", () => {
  for (const [totalSize, afterSequence] of [
    [0, 0],
    [1, 0],
    [9, 7],
  ] as const) {
    it(`starts after entry ${afterSequence} of ${totalSize}`, async () => {
      const caller = createFakeCaller(({ service }) =>
        service(KmsService, { getAuditLog: () => ({ totalSize }) }),
      );
      expect(await prepareWatch(caller)).toEqual({ totalSize, afterSequence });
    });
  }
});

describe("receiveEntry", () => {
  it("checks that an entry follows the one before it", async () => {
    const first = await receiveEntry({ entry: create(AuditEntrySchema, { sequence: 7 }) }, []);
    expect(first.link).toBe("anchor");
    const third = await receiveEntry({ entry: create(AuditEntrySchema, { sequence: 9 }) }, [first]);
    expect(third.link).toBe("broken");
  });

  it("refuses a message without an entry", async () => {
    await expect(receiveEntry({}, [])).rejects.toThrow("without an entry");
  });
});

describe("the life of a key", () => {
  it("signs, and both sides find the signature valid", async () => {
    const caller = startKeyService();
    const { verdicts } = await signAndVerify(caller, await createManagedKey(caller, "release"));
    expect(verdicts).toEqual({ server: true, browser: true });
  });

  it("finds that another key signed", async () => {
    const caller = startKeyService();
    const key = { ...(await createManagedKey(caller, "release")), publicKey: ml_dsa65.keygen().publicKey };
    expect((await signAndVerify(caller, key)).verdicts).toEqual({ server: true, browser: false });
  });

  it("shows the refusal to sign after the rotation, and to verify after the destruction", async () => {
    const caller = startKeyService();
    const key = await createManagedKey(caller, "release");
    const signed = await signAndVerify(caller, key);
    const rotated = await rotateManagedKey(caller, key, signed);
    expect(rotated).toMatchObject({ oldKey: { status: "ROTATED" }, newKey: { keyId: "key-2" }, valid: true });
    expect(rotated.refusal.message).toBe("ROTATED");
    const { newStatus, refusal } = await destroyManagedKey(caller, key, signed);
    expect([newStatus, refusal.message]).toEqual(["DESTROYED", "DESTROYED"]);
  });
});

describe("verifyLog", () => {
  for (const [statement, isCheckpointSigned] of [
    ["entry 3", true],
    ["entry 4", false],
  ] as const) {
    it(`finds a checkpoint of “entry 3” that says “${statement}” ${isCheckpointSigned ? "" : "not "}signed`, async () => {
      const signature = ml_dsa65.sign(new TextEncoder().encode("entry 3"), secretKey);
      const caller = createFakeCaller(({ service }) =>
        service(KmsService, { verifyAuditLog: () => ({ checkpoint: { statement, signature, publicKey } }) }),
      );
      expect(await verifyLog(caller)).toMatchObject({ isCheckpointSigned });
    });
  }

  it("finds no signature where there is no checkpoint", async () => {
    const caller = createFakeCaller(({ service }) => service(KmsService, { verifyAuditLog: () => ({}) }));
    expect(await verifyLog(caller)).toMatchObject({ isCheckpointSigned: false });
  });
});
