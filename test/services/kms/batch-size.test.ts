/** How many signatures of each algorithm fit into one BatchSign response, as every protocol encodes it. */
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { BatchSignResponseSchema } from "#gen/kms/kms_service_pb.ts";
import { mlDsaNames, signatureAlgorithms, slhDsaNames } from "../../../src/crypto/algorithms.ts";
import { countFitting } from "../../../src/services/kms/batch-size.ts";
import { bytesOf } from "../../support/bytes.ts";
import { failureOf, refusal } from "../../support/refusal.ts";
import { restRefusal } from "../answers.ts";
import { createKey, describeKms, readDeeds } from "./kms-server.ts";

const limitBytes = 4 * 1024 * 1024;

describe.each([...mlDsaNames, ...slhDsaNames])("a response with %s signatures", (algorithm) => {
  const { signatureBytes } = signatureAlgorithms[algorithm];
  const sizeOf = { binary: sizeInBinary, json: sizeInJson };

  it.each(["binary", "json"] as const)("holds the calculated number in 4 MiB: %s", (form) => {
    const most = countFitting(algorithm, form);
    expect(sizeOf[form](responseOf(most))).toBeLessThanOrEqual(limitBytes);
    // At most one in a hundred is wasted.
    expect(sizeOf[form](responseOf(Math.ceil(most * 1.01) + 1))).toBeGreaterThan(limitBytes);
  });

  function responseOf(count: number) {
    const results = Array<{ signature: Uint8Array }>(count).fill({
      signature: new Uint8Array(signatureBytes),
    });
    const keyId = `key-${crypto.randomUUID()}`;
    return create(BatchSignResponseSchema, { status: "success", results, keyId, algorithm });
  }
});

/** Includes the prefix of a gRPC message. */
function sizeInBinary(response: ReturnType<typeof create<typeof BatchSignResponseSchema>>): number {
  return 5 + toBinary(BatchSignResponseSchema, response).length;
}

function sizeInJson(response: ReturnType<typeof create<typeof BatchSignResponseSchema>>): number {
  return toJsonString(BatchSignResponseSchema, response, { alwaysEmitImplicit: true }).length;
}

const tooLarge = { code: "InvalidArgument", reason: "BATCH_TOO_LARGE", fields: ["data"] };

describeKms("KmsService.BatchSign with more signatures than fit into a response", (_start, shared) => {
  const data = Array<Uint8Array>(1000).fill(bytesOf("message"));

  it.each(["ML-DSA-87", "SLH-DSA-SHA2-128f"] as const)(
    "signs nothing with %s, states how many fit, and leaves one audit entry",
    async (algorithm) => {
      const { kms } = await shared();
      const { keyId } = await createKey(kms, { algorithm });
      const error = await failureOf(kms.batchSign({ keyId, data }));
      expect(await refusal(Promise.reject(error))).toEqual(tooLarge);
      expect(error.rawMessage).toContain(`at most ${countFitting(algorithm, "binary")}`);
      expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=BATCH_TOO_LARGE"]);
    },
  );

  it("counts bytes in base64 over REST", async () => {
    const { kms, rest } = await shared();
    const { keyId } = await createKey(kms, { algorithm: "ML-DSA-65" });
    const items = data.map((message) => Buffer.from(message).toString("base64"));
    const answer = await rest("POST /api/kms/batch-sign", { keyId, data: items });
    expect(restRefusal(answer)).toMatchObject({ reason: "BATCH_TOO_LARGE" });
    expect(answer.text).toContain(`at most ${countFitting("ML-DSA-65", "json")}`);
    expect((await kms.batchSign({ keyId, data: data.slice(0, 3) })).results).toHaveLength(3);
  });
});
