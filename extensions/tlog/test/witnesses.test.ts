/** Witness cosignatures: which ones a log accepts, and where they appear. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { present } from "../../../test/services/answers.ts";
import { type AtEnd, endAfterAll } from "../../../test/support/at-end.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { outcomeOf, refusal } from "../../../test/support/refusal.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { formatCheckpoint, parseCheckpoint } from "../checkpoint.ts";
import { formatNote, parseNote } from "../note.ts";
import { createMlDsa44Signer, type NoteSigner } from "../sign-notes.ts";
import { formatVerifierKey } from "../verifier-keys.ts";
import { verifyNote } from "../verify-note.ts";
import { awaitSize, fetchNote, startLogServer, writeUses } from "./log-server.ts";
import { makeEd25519Witness } from "./witness.ts";

const timeout = 180_000;
const log = "audit";
const names = ["witness.example/one", "witness.example/two"] as const;

/** A server that trusts two witnesses, with a checkpoint over three entries. */
async function startWitnessed(atEnd: AtEnd = onTestFinished, [one, two]: readonly [string, string] = names) {
  const provider = await createCryptoProvider("openssl");
  atEnd(() => provider.close());
  const first = makeEd25519Witness(one);
  const { secretKey } = await provider.generateKeyPair("ML-DSA-44");
  const second = createMlDsa44Signer(two, provider, secretKey);
  const directory = makeTemporaryDirectory(atEnd);
  const file = join(directory, "witnesses");
  const keys = [first, second].map(({ key }) => formatVerifierKey(key));
  writeFileSync(file, `# who watches this log\n${keys.join("\n")}\n`);
  const server = await startLogServer(["--witnesses", file], directory, atEnd);
  await writeUses(server, 3);
  const note = parseNote((await awaitSize(server.url, 3)).bytes);
  const add = (bytes: Uint8Array, log = "audit") => server.logs.addCosignature({ log, note: bytes });
  const list = async () => (await server.logs.listCosignatures({ log })).cosignatures;
  return { server, provider, first, second, keys, note, add, list };
}

/** A note with the cosignatures of these witnesses. */
async function cosign(text: string, witnesses: readonly NoteSigner[], now = new Date()) {
  const signatures = await Promise.all(witnesses.map((witness) => witness.sign(text, now)));
  return Buffer.from(formatNote({ text, signatures }));
}

describe("a trusted witness's cosignature", { timeout }, () => {
  it.each([
    ["of a different witness", names],
    ["of the same witness with its other key", [names[0], names[0]]],
  ] as const)("with Ed25519 appears and verifies beside one with ML-DSA-44 %s", async (_, names) => {
    const { server, provider, first, second, note, add } = await startWitnessed(onTestFinished, names);
    const now = new Date();
    const given = parseNote(await cosign(note.text, [first, second], now));
    const signatures = [...note.signatures, ...given.signatures];
    expect((await add(Buffer.from(formatNote({ ...note, signatures })))).treeSize).toBe(3);
    const cosigned = parseNote(await fetchNote(server.url));
    expect(cosigned.signatures).toHaveLength(5);
    const timestamp = Math.floor(now.getTime() / 1000);
    for (const { key } of [first, second])
      expect(await verifyNote(provider, cosigned, key)).toMatchObject({ timestamp });
  });

  it("is listed with the witness's key and time, and replaces an older one by the same key, not a newer one", async () => {
    const { server, first, keys, note, add, list } = await startWitnessed();
    const days = [];
    for (const day of ["02", "03", "01"]) {
      await add(await cosign(note.text, [first], new Date(`2026-01-${day}T03:04:05.678Z`)));
      days.push((await list()).map(({ signedAt }) => timestampDate(present(signedAt)).toISOString()));
    }
    expect(days).toEqual(["02", "03", "03"].map((day) => [`2026-01-${day}T03:04:05.000Z`]));
    expect(await server.logs.listCosignatures({ log, treeSize: 3 })).toMatchObject({
      treeSize: 3,
      cosignatures: [
        { witnessKey: keys[0], signatureLine: expect.stringMatching(/^— witness\.example\/one \S+$/) },
      ],
    });
    expect((await server.logs.listLogs({})).logs[0]?.witnessKeys).toEqual(keys);
  });

  it("stays available when the log grows, and is hidden once the witness is no longer trusted", async () => {
    const { server, first, second, note, add } = await startWitnessed();
    await add(await cosign(note.text, [first]));
    await writeUses(server, 2);
    await awaitSize(server.url, 5);
    const get = async (witnesses: number) => {
      const { checkpoint } = await server.logs.getCheckpoint({ log, witnesses });
      return parseCheckpoint(parseNote(present(checkpoint).data).text).size;
    };
    expect([await get(0), await get(1)]).toEqual([5, 3]);
    expect(await outcomeOf(get(2))).toBe("CHECKPOINT_NOT_FOUND");
    // The checkpoint of size 3 is not the newest, but a witness may be slow.
    await add(await cosign(note.text, [second]));
    expect(await get(2)).toBe(3);
    const response = await fetch(`${server.url}/api/logs/audit/checkpoint?witnesses=2`);
    expect(await response.text()).toContain("witness.example/two");
    await server.close();
    const { logs } = await startLogServer([], server.dataDir);
    expect((await logs.listCosignatures({ log, treeSize: 3 })).cosignatures).toEqual([]);
    expect(await outcomeOf(logs.getCheckpoint({ log, witnesses: 1 }))).toBe("CHECKPOINT_NOT_FOUND");
  });
});

describe("a cosignature is rejected", { timeout }, () => {
  const atEnd = endAfterAll();
  let made: Awaited<ReturnType<typeof startWitnessed>>;
  beforeAll(async () => {
    made = await startWitnessed(atEnd);
  }, timeout);

  const cosigned = (change = (text: string) => text, now = new Date()) =>
    cosign(change(made.note.text), [made.first], now);
  const byOther = (name: string) => cosign(made.note.text, [makeEd25519Witness(name)]);
  const ofSize = (size: number) => (text: string) =>
    formatCheckpoint({ ...parseCheckpoint(text), size, root: new Uint8Array(32) });
  /** With signatures that follow from the first witness's right one. */
  const signedWith = async (change: (good: ReturnType<typeof parseNote>["signatures"]) => object[]) => {
    const { text, signatures } = parseNote(await cosigned());
    return Buffer.from(formatNote({ text, signatures: change(signatures) as typeof signatures }));
  };
  const ofOtherSize = async () => {
    const { signatures } = parseNote(await cosign(made.note.text.replace("\n3\n", "\n4\n"), [made.second]));
    return signedWith((good) => [...good, ...signatures]);
  };

  const flipped = () =>
    signedWith(([good]) => [{ ...good, signature: flipBit(present(good).signature, 20) }]);
  const at = (ms: number) => () => cosigned(undefined, new Date(ms));
  const nameOther = () => cosigned((text) => text.replace("/audit\n", "/blockchain\n"));
  const followed = async () => Buffer.concat([await cosigned(), Buffer.of(0xff)]);

  it.each<[string, () => Promise<Uint8Array>, reason: string, log?: string]>([
    ["its witness is unknown", () => byOther("other.example"), "WITNESS_UNKNOWN"],
    ["only its witness's name is known", () => byOther("witness.example/one"), "WITNESS_UNKNOWN"],
    ["it is missing", async () => Buffer.from(formatNote(made.note)), "WITNESS_UNKNOWN"],
    ["a bit was flipped", flipped, "COSIGNATURE_INVALID"],
    ["one beside it is for another size", ofOtherSize, "COSIGNATURE_INVALID"],
    ["it is duplicated", () => signedWith((good) => [...good, ...good]), "COSIGNATURE_INVALID"],
    ["its time is in the future", at(Date.now() + 3_600_000), "COSIGNATURE_INVALID"],
    ["it has no time", at(0), "COSIGNATURE_INVALID"],
    ["its checkpoint has another root", () => cosigned(ofSize(3)), "CHECKPOINT_NOT_FOUND"],
    ["its checkpoint was never published", () => cosigned(ofSize(2)), "CHECKPOINT_NOT_FOUND"],
    ["its checkpoint is of size 2^53 - 1", () => cosigned(ofSize(2 ** 53 - 1)), "CHECKPOINT_NOT_FOUND"],
    ["its checkpoint has an extension", () => cosigned((text) => `${text}more\n`), "CHECKPOINT_NOT_FOUND"],
    ["it is for a different log", () => cosigned(), "NOTE_INVALID", "blockchain"],
    ["its note names a different log", nameOther, "NOTE_INVALID"],
    ["it is no note", async () => Buffer.from("nothing"), "NOTE_INVALID"],
    ["it is a checkpoint without signatures", async () => Buffer.from(made.note.text), "NOTE_INVALID"],
    ["it is followed by another byte", followed, "NOTE_INVALID"],
  ])("if %s, and nothing is stored", async (_, makeNote, reason, log) => {
    expect(await refusal(made.add(await makeNote(), log))).toMatchObject({ reason });
    expect(await made.list()).toEqual([]);
  });
});

describe("--witnesses", () => {
  const vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
  it.each([
    ["a file with a word, and names the line", "hello", "", /line 2 of .* is not a verifier key/],
    ["a file with a key that cannot cosign", vkey, "", /cannot cosign/],
    ["a missing file", "", "/nowhere", /--witnesses: .* cannot be read/],
  ])("rejects %s", async (_, text, ending, message) => {
    const file = join(makeTemporaryDirectory(), "witnesses");
    writeFileSync(file, `# comment\n${text}\n`);
    await expect(startLogServer(["--witnesses", file + ending])).rejects.toThrow(message);
  });
});
