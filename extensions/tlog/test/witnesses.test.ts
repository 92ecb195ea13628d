/** Witness cosignatures: which ones a log accepts, and where they appear. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { present } from "../../../test/services/answers.ts";
import { type AtEnd, endAfterAll } from "../../../test/support/at-end.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { formatCheckpoint, parseCheckpoint } from "../checkpoint.ts";
import { formatNote, type Note, type NoteSignature, parseNote } from "../note.ts";
import { createMlDsa44Signer, type NoteSigner } from "../sign-notes.ts";
import { formatVerifierKey } from "../verifier-keys.ts";
import { verifyNote } from "../verify-note.ts";
import { awaitSize, fetchNote, type LogServer, startLogServer, writeUses } from "./log-server.ts";
import { makeEd25519Witness } from "./witness.ts";

async function makeMlDsaWitness(name: string, atEnd: AtEnd): Promise<NoteSigner> {
  const provider = await createCryptoProvider("openssl");
  atEnd(() => provider.close());
  const { secretKey } = await provider.generateKeyPair("ML-DSA-44");
  return createMlDsa44Signer(name, provider, secretKey);
}

/** A server that trusts two witnesses, with a checkpoint over three entries. */
async function startWitnessed(
  names: readonly [string, string] = ["witness.example/one", "witness.example/two"],
  atEnd: AtEnd = onTestFinished,
) {
  const first = makeEd25519Witness(names[0]);
  const second = await makeMlDsaWitness(names[1], atEnd);
  const directory = makeTemporaryDirectory(atEnd);
  const file = join(directory, "witnesses");
  const keys = [first, second].map(({ key }) => formatVerifierKey(key));
  writeFileSync(file, `# who watches this log\n${keys.join("\n")}\n`);
  const server = await startLogServer(["--witnesses", file], directory, atEnd);
  await writeUses(server, 3);
  const { bytes } = await awaitSize(server.url, 3);
  return { server, first, second, keys, file, note: parseNote(bytes) };
}

const encode = (text: string, signatures: readonly NoteSignature[]): Uint8Array =>
  Buffer.from(formatNote({ text, signatures }));
const add = (server: LogServer, note: Uint8Array, log = "audit") => server.logs.addCosignature({ log, note });

describe("a trusted witness's cosignature", { timeout: 180_000 }, () => {
  it("with Ed25519 or ML-DSA-44 appears in the checkpoint and verifies with its key", async () => {
    const { server, first, second, note } = await startWitnessed();
    const now = new Date();
    const cosignatures = await Promise.all([first, second].map((one) => one.sign(note.text, now)));
    const added = await add(server, encode(note.text, [...note.signatures, ...cosignatures]));
    expect(added.treeSize).toBe(3);
    const cosigned = parseNote(await fetchNote(server.url));
    expect(cosigned.signatures).toHaveLength(5);
    const provider = await createCryptoProvider("openssl");
    for (const { key } of [first, second])
      expect(await verifyNote(provider, cosigned, key)).toMatchObject({
        timestamp: Math.floor(now.getTime() / 1000),
      });
    await provider.close();
  });

  it("can be accompanied by a second one from the same witness's other key", async () => {
    const name = "witness.example/both";
    const { server, first, second, note } = await startWitnessed([name, name]);
    const signed = await Promise.all([first, second].map((one) => one.sign(note.text, new Date())));
    await add(server, encode(note.text, signed));
    const { cosignatures } = await server.logs.listCosignatures({ log: "audit" });
    expect(cosignatures).toHaveLength(2);
    expect(
      parseNote(await fetchNote(server.url)).signatures.filter(({ keyName }) => keyName === name),
    ).toHaveLength(2);
  });

  it("is listed with the witness's key and time", async () => {
    const { server, first, keys, note } = await startWitnessed();
    const now = new Date("2026-01-02T03:04:05.678Z");
    await add(server, encode(note.text, [await first.sign(note.text, now)]));
    const { cosignatures, treeSize } = await server.logs.listCosignatures({ log: "audit" });
    expect(treeSize).toBe(3);
    expect(
      cosignatures.map(({ witnessKey, signedAt }) => [witnessKey, timestampDate(present(signedAt))]),
    ).toEqual([[keys[0], new Date("2026-01-02T03:04:05Z")]]);
    expect(cosignatures[0]?.signatureLine).toMatch(/^— witness\.example\/one \S+$/);
    expect(await server.logs.listCosignatures({ log: "audit", treeSize: 3 })).toMatchObject({ treeSize: 3 });
    expect((await server.logs.listLogs({})).logs[0]?.witnessKeys).toEqual(keys);
  });

  it("replaces an older one by the same key, but not a newer one", async () => {
    const { server, first, note } = await startWitnessed();
    const times = [];
    for (const day of ["02", "03", "01"]) {
      await add(
        server,
        encode(note.text, [await first.sign(note.text, new Date(`2026-01-${day}T00:00:00Z`))]),
      );
      const { cosignatures } = await server.logs.listCosignatures({ log: "audit" });
      times.push(cosignatures.map(({ signedAt }) => timestampDate(present(signedAt)).getUTCDate()));
    }
    expect(times).toEqual([[2], [3], [3]]);
  });

  it("stays available when the log grows: a reader can request the newest cosigned checkpoint", async () => {
    const { server, first, second, note } = await startWitnessed();
    await add(server, encode(note.text, [await first.sign(note.text, new Date())]));
    await writeUses(server, 2);
    await awaitSize(server.url, 5);
    const get = async (witnesses: number) => {
      const { checkpoint } = await server.logs.getCheckpoint({ log: "audit", witnesses });
      return parseCheckpoint(parseNote(present(checkpoint).data).text).size;
    };
    expect([await get(0), await get(1)]).toEqual([5, 3]);
    expect(await refusal(get(2))).toMatchObject({ reason: "CHECKPOINT_NOT_FOUND" });
    // The checkpoint of size 3 is not the newest, but a witness may be slow.
    await add(server, encode(note.text, [await second.sign(note.text, new Date())]));
    expect(await get(2)).toBe(3);
    const response = await fetch(`${server.url}/api/logs/audit/checkpoint?witnesses=2`);
    expect(await response.text()).toContain("witness.example/two");
  });

  it("is hidden once the witness is no longer trusted", async () => {
    const { server, first, note } = await startWitnessed();
    await add(server, encode(note.text, [await first.sign(note.text, new Date())]));
    await server.close();
    const next = await startLogServer([], server.dataDir);
    expect((await next.logs.listCosignatures({ log: "audit" })).cosignatures).toEqual([]);
    expect(parseNote(await fetchNote(next.url)).signatures).toHaveLength(3);
  });
});

describe("a cosignature is rejected", { timeout: 180_000 }, () => {
  const atEnd = endAfterAll();
  let server: LogServer;
  let first: NoteSigner;
  let second: NoteSigner;
  let note: Note;
  beforeAll(async () => {
    ({ server, first, second, note } = await startWitnessed(undefined, atEnd));
  }, 180_000);

  it("if its witness is unknown, even under a trusted witness's name", async () => {
    for (const outsider of [makeEd25519Witness("other.example"), makeEd25519Witness("witness.example/one")])
      expect(
        await refusal(add(server, encode(note.text, [await outsider.sign(note.text, new Date())]))),
      ).toMatchObject({ code: "PermissionDenied", reason: "WITNESS_UNKNOWN" });
    expect(await refusal(add(server, encode(note.text, note.signatures)))).toMatchObject({
      reason: "WITNESS_UNKNOWN",
    });
  });

  it("if it does not verify or is duplicated, and nothing is stored", async () => {
    const good = await first.sign(note.text, new Date());
    const ofOther = await second.sign(note.text.replace("\n3\n", "\n4\n"), new Date());
    for (const wrong of [
      [{ ...good, signature: good.signature.map((byte, i) => (i === 20 ? byte ^ 1 : byte)) }],
      [good, ofOther],
      [good, good],
    ])
      expect(await refusal(add(server, encode(note.text, wrong)))).toMatchObject({
        code: "InvalidArgument",
        reason: "COSIGNATURE_INVALID",
      });
    expect((await server.logs.listCosignatures({ log: "audit" })).cosignatures).toEqual([]);
  });

  it("if its time is in the future or missing", async () => {
    for (const time of [new Date(Date.now() + 3_600_000), new Date(0)])
      expect(
        await refusal(add(server, encode(note.text, [await first.sign(note.text, time)]))),
      ).toMatchObject({
        reason: "COSIGNATURE_INVALID",
      });
  });

  it("if its checkpoint was never published by the server", async () => {
    const { origin } = parseCheckpoint(note.text);
    const root = new Uint8Array(32);
    for (const text of [
      formatCheckpoint({ origin, size: 3, root }),
      formatCheckpoint({ origin, size: 2, root }),
      formatCheckpoint({ origin, size: 9_007_199_254_740_991, root }),
      `${note.text}extension\n`,
    ])
      expect(await refusal(add(server, encode(text, [await first.sign(text, new Date())])))).toMatchObject({
        code: "NotFound",
        reason: "CHECKPOINT_NOT_FOUND",
      });
  });

  it("if it is for a different log, or not for a checkpoint", async () => {
    const cosigned = encode(note.text, [await first.sign(note.text, new Date())]);
    const other = note.text.replace("/audit\n", "/blockchain\n");
    for (const [log, wrong] of [
      ["blockchain", cosigned],
      ["audit", encode(other, [await first.sign(other, new Date())])],
      ["audit", Buffer.from("nothing")],
      ["audit", Buffer.from(note.text)],
      ["audit", Buffer.concat([cosigned, Buffer.of(0xff)])],
    ] as const)
      expect(await refusal(add(server, wrong, log))).toMatchObject({
        code: "InvalidArgument",
        reason: "NOTE_INVALID",
      });
  });
});

describe("--witnesses", () => {
  it.each([
    ["a word", "hello", /line 2 of .* is not a verifier key/],
    [
      "a key that cannot cosign",
      "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
      /cannot cosign/,
    ],
  ])("rejects a file with %s and names the line", async (_, text, message) => {
    const file = join(makeTemporaryDirectory(), "witnesses");
    writeFileSync(file, `# comment\n${text}\n`);
    await expect(startLogServer(["--witnesses", file])).rejects.toThrow(message);
  });

  it("rejects a missing file", async () => {
    await expect(startLogServer(["--witnesses", "/nowhere/at/all"])).rejects.toThrow(
      /--witnesses: .* cannot be read/,
    );
  });
});
