import { describe, expect, it } from "vitest";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { hashChildren, hashLeaf } from "../../../src/merkle/hashes.ts";
import { breaking, proving, reading } from "../../page/stories/log/page.tsx";
import type { LogHead } from "../../page/stories/log/tree.ts";
import { runStep, serve } from "./fake-caller.ts";

const leaves = [Uint8Array.of(1), Uint8Array.of(2)] as const;
const leafHashes = leaves.map(hashLeaf);
const [first = Buffer.of(), second = Buffer.of()] = leafHashes;
const checkpoint = {
  origin: "logs.example.com/blockchain",
  size: 2,
  root: hashChildren(first, second),
  isSigned: true,
  signature: new Uint8Array(),
};
const head: LogHead = { log: "blockchain", checkpoint, leafHashes };

function answerProof(answer: { readonly leaf: Uint8Array; readonly hashes: Uint8Array[] }) {
  return serve(LogService, { getInclusionProof: async () => ({ treeSize: 99, leafIndex: 99, ...answer }) });
}

const prove = (leaf: Uint8Array, hashes: Uint8Array[]) =>
  runStep(proving, answerProof({ leaf, hashes }), { reading: head, leaf: "0" });

describe("proving", () => {
  it("checks a proof for the requested leaf and size, whatever the answer states", async () => {
    const proved = await prove(leaves[0], [second]);
    expect(proved).toMatchObject({ isInTree: true, inclusion: { index: 0, size: 2 } });
  });

  it("finds that a proof for a different leaf does not lead to the root", async () => {
    const proved = await prove(leaves[1], [second]);
    expect(proved.isInTree).toBe(false);
  });

  it("rejects a proof with too many hashes", async () => {
    await expect(prove(leaves[0], [second, second])).rejects.toThrow(RangeError);
  });
});

describe("breaking", () => {
  it.each(["0", "1", "99"])("leads to a different root if a bit is flipped at place %s", async (place) => {
    const given = { reading: head, proving: await prove(leaves[0], [second]), place };
    expect((await runStep(breaking, serve(LogService, {}), given)).isInTree).toBe(false);
  });
});

it("reading trusts no root without the log's signature", async () => {
  const note = `logs.example.com/blockchain\n2\n${Buffer.from(checkpoint.root).toString("base64")}\n\n— x AAAAAA==\n`;
  const caller = serve(LogService, {
    listLogs: async () => ({ logs: [{ log: "blockchain", verifierKeys: ["x+00000000+AQID"] }] }),
    getCheckpoint: async () => ({ checkpoint: { data: Buffer.from(note) } }),
    getTile: async () => ({ tile: { data: Buffer.concat(leafHashes) } }),
  });
  const found = await runStep(reading, caller, { log: "blockchain" });
  expect(found.checkpoint).toMatchObject({ size: 2, isSigned: false });
  const hashes = [first, second].map((hash) => Buffer.from(hash));
  expect(found.leafHashes.map((hash) => Buffer.from(hash))).toEqual(hashes);
});
