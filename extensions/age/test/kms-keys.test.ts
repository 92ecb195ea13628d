/** Which server-held keys are tried for a file, against a server that never has the right one. */
import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { KeyRecordSchema } from "#gen/kms/key_pb.ts";
import type { ApiClient } from "../../../src/cli/connection/api-client.ts";
import { findFileKeyOnServer } from "../kms-keys.ts";

/** A server with these keys, oldest first: ID, status, and whether it is the primary one. Records the key of each Decapsulate call. */
function serverWith(keys: readonly string[], sharedSecretBytes = 32, pageSize = 1000) {
  const tried: string[] = [];
  const refused = new Map<string, ConnectError>();
  const records = keys.map((key) => {
    const [keyId = "", status = "", primary] = key.split(" ");
    return create(KeyRecordSchema, { keyId, status, isPrimary: primary === "primary" });
  });
  type Request = { readonly keyId: string; readonly pageToken?: string };
  const ask = async ({ name }: { readonly name: string }, { keyId, pageToken }: Request) => {
    if (name === "GetKey") return { versions: records };
    if (name === "ListKeys") {
      const from = Number(pageToken ?? 0);
      const to = from + pageSize;
      return { keys: records.slice(from, to), nextPageToken: to < records.length ? String(to) : "" };
    }
    tried.push(keyId);
    if (refused.get(keyId) !== undefined) throw refused.get(keyId);
    return { result: { sharedSecret: randomBytes(sharedSecretBytes) } };
  };
  return { tried, refused, client: { ask } as unknown as ApiClient };
}

const sealed = (count: number) =>
  Array.from({ length: count }, () => ({ enc: randomBytes(1120), ciphertext: randomBytes(32) }));
const active = (count: number) => Array.from({ length: count }, (_, i) => `key-${i} ACTIVE`);

describe("the keys that may open a file", () => {
  it("are the caller's active and rotated ones, the newest first", async () => {
    const others = ["disabled DISABLED", "destroyed DESTROYED", "scheduled DESTROY_SCHEDULED"];
    const { tried, client } = serverWith(["oldest ROTATED", ...others, "newest ACTIVE"]);
    const notTried = "Not tried: disabled (DISABLED), scheduled (DESTROY_SCHEDULED)";
    await expect(findFileKeyOnServer(client, "", sealed(1))).rejects.toThrow(notTried);
    expect(tried).toEqual(["newest", "oldest"]);
  });

  const versions = ["first ROTATED", "second DESTROYED", "third ROTATED", "fourth ACTIVE primary"];
  it.each<[string, string[], string, recipients: number, tried: string]>([
    ["are the newest of all pages", active(5), "", 1, "key-4 key-3 key-2 key-1 key-0"],
    ["are the primary version of a name, then its others", versions, "name/a", 1, "name/a third first"],
    ["are only the one that an ID names", active(3), "key-1", 2, "key-1 key-1"],
    ["may need all eight calls", active(8), "", 1, "key-7 key-6 key-5 key-4 key-3 key-2 key-1 key-0"],
    ["are not asked for a file without post-quantum recipients", active(1), "", 0, ""],
  ])("%s", async (_name, keys, handle, recipients, expected) => {
    const { tried, client } = serverWith(keys, 32, 2);
    expect(await findFileKeyOnServer(client, handle, sealed(recipients))).toBeUndefined();
    expect(tried.join(" ")).toBe(expected);
  });

  it("are the other versions of a name whose primary one does not decrypt now", async () => {
    const disabled = new ConnectError("the key is DISABLED", Code.FailedPrecondition, undefined, [
      { desc: ErrorInfoSchema, value: { reason: "KEY_STATE_INVALID", domain: "quantum-safe-playground" } },
    ]);
    const { tried, refused, client } = serverWith(["first ROTATED", "second DISABLED primary"]);
    refused.set("name/archive", disabled);
    await expect(findFileKeyOnServer(client, "name/archive", sealed(1))).rejects.toBe(disabled);
    expect(tried).toEqual(["name/archive", "first"]);
  });

  it.each([
    ["many keys", "", active(9), 1, /8 attempts with your newest keys .* qsp decrypt --key KEY, or for age/],
    ["many recipients", "key-0", active(1), 9, /9 post-quantum recipients; .* among the first 8$/],
    ["many of both", "name/a", active(20), 3, /8 attempts with name\/a did not open the file/],
  ] as const)("take at most eight calls with %s", async (_name, handle, keys, recipients, message) => {
    const { tried, client } = serverWith(keys);
    await expect(findFileKeyOnServer(client, handle, sealed(recipients))).rejects.toThrow(message);
    expect(tried).toHaveLength(8);
  });

  it.each([
    ["must exist", serverWith([]), "you have no X-Wing key with usage KEM on this server"],
    ["must give 32 bytes", serverWith(active(1), 31), "an answer without a shared secret of 32 bytes"],
  ])("%s", async (_name, { client }, message) => {
    await expect(findFileKeyOnServer(client, "", sealed(1))).rejects.toThrow(message);
  });
});
