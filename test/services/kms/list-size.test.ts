/** Names with the maximum labels, which every version shows. */

import { toJsonString } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { GetKeyResponseSchema, ListKeysResponseSchema } from "#gen/kms/kms_service_pb.ts";
import { present } from "../answers.ts";
import { describeKms } from "./kms-server.ts";

/** 64 KB in UTF-8. */
const labels = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`label-${i}`, "🔑".repeat(255)]));
const versions = 60;
/** The message limit of many clients. */
const clientLimit = 4 * 1024 * 1024;

describeKms("a name with large labels and many versions", (start) => {
  it("is returned and listed in responses that every client accepts", async () => {
    const { kms } = await start();
    const name = "large";
    await kms.createKey({ algorithm: "ML-KEM-512", usage: "KEM", name, labels });
    for (let count = 1; count < versions; count += 1) await kms.rotateKey({ keyId: `name/${name}` });
    const shown = await kms.getKey({ keyId: `name/${name}` });
    expect(Buffer.byteLength(toJsonString(GetKeyResponseSchema, shown))).toBeLessThan(200_000);
    expect(present(shown.result).labels).toEqual(labels);
    expect(shown.versions.map(({ version, labels }) => [version, labels])).toEqual(
      Array.from({ length: versions }, (_, i) => [i + 1, {}]),
    );
    for (const filter of [{}, { name }]) {
      const listed: number[] = [];
      for (let pageToken = ""; listed.length === 0 || pageToken !== ""; ) {
        const page = await kms.listKeys({ ...filter, pageToken });
        expect(Buffer.byteLength(toJsonString(ListKeysResponseSchema, page))).toBeLessThan(clientLimit);
        expect(page.keys.every((key) => Object.keys(key.labels).length === 64)).toBe(true);
        listed.push(...page.keys.map(({ version }) => version ?? 0));
        pageToken = page.nextPageToken;
      }
      expect(listed).toEqual(Array.from({ length: versions }, (_, i) => i + 1));
    }
  });
});
