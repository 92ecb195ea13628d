/** How many signatures of each algorithm fit into one BatchSign response, as every protocol encodes it. */
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type BatchSignResponse, BatchSignResponseSchema } from "#gen/kms/kms_service_pb.ts";
import { mlDsaNames, signatureAlgorithms, slhDsaNames } from "../../../src/crypto/algorithms.ts";
import { countFitting } from "../../../src/services/kms/batch-size.ts";
import { bytesOf } from "../../support/bytes.ts";
import { describeRefusal, failureOf } from "../../support/refusal.ts";
import { invalidArgument } from "../../support/refusals.ts";
import { restRefusal } from "../answers.ts";
import { describeKms, readDeeds, withKey } from "./kms-server.ts";

const limitBytes = 4 * 1024 * 1024;

/** How each encoding measures a response; binary includes the prefix of a gRPC message. */
const sizeOf = {
  binary: (response: BatchSignResponse) => 5 + toBinary(BatchSignResponseSchema, response).length,
  json: (response: BatchSignResponse) =>
    toJsonString(BatchSignResponseSchema, response, { alwaysEmitImplicit: true }).length,
};

describe.each([...mlDsaNames, ...slhDsaNames])("a response with %s signatures", (algorithm) => {
  it.each(["binary", "json"] as const)("holds the calculated number in 4 MiB: %s", (form) => {
    const signature = new Uint8Array(signatureAlgorithms[algorithm].signatureBytes);
    const keyId = `key-${crypto.randomUUID()}`;
    const sizeWith = (count: number) => {
      const results = Array(count).fill({ signature });
      return sizeOf[form](create(BatchSignResponseSchema, { status: "success", results, keyId, algorithm }));
    };
    const most = countFitting(algorithm, form);
    expect(sizeWith(most)).toBeLessThanOrEqual(limitBytes);
    // At most one in a hundred is wasted.
    expect(sizeWith(Math.ceil(most * 1.01) + 1)).toBeGreaterThan(limitBytes);
  });
});

describeKms("KmsService.BatchSign with more signatures than fit into a response", (_start, shared) => {
  const data = Array<Uint8Array>(1000).fill(bytesOf("message"));

  it.each(["ML-DSA-87", "SLH-DSA-SHA2-128f"] as const)(
    "signs nothing with %s, states how many fit, and leaves one audit entry",
    async (algorithm) => {
      const { kms, keyId } = await withKey(shared(), { algorithm });
      const error = await failureOf(kms.batchSign({ keyId, data }));
      expect(describeRefusal(error)).toEqual(invalidArgument("BATCH_TOO_LARGE", "data"));
      expect(error.rawMessage).toContain(`at most ${countFitting(algorithm, "binary")}`);
      expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=BATCH_TOO_LARGE"]);
    },
  );

  it("counts bytes in base64 over REST", async () => {
    const { kms, rest, keyId } = await withKey(shared(), { algorithm: "ML-DSA-65" });
    const items = data.map((message) => Buffer.from(message).toString("base64"));
    const answer = await rest("POST /api/kms/batch-sign", { keyId, data: items });
    expect(restRefusal(answer)).toMatchObject({ reason: "BATCH_TOO_LARGE" });
    expect(answer.text).toContain(`at most ${countFitting("ML-DSA-65", "json")}`);
    expect((await kms.batchSign({ keyId, data: data.slice(0, 3) })).results).toHaveLength(3);
  });
});
