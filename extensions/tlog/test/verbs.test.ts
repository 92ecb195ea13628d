/** `qsp log`: fetches checkpoints and proofs, and verifies them without a server. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { qsp, qspDone, type RunOptions, timeout, useServer } from "../../../test/cli/qsp.ts";

const server = useServer();
const nowhere = "http://127.0.0.1:1";

/** A directory with the audit log's keys, and entries in the log. */
async function makePlace(): Promise<RunOptions & { readonly hashes: readonly string[] }> {
  const kms = server.client(KmsService);
  await kms.createKey({});
  await kms.createKey({});
  const place = { ...server.place(), url: server.url };
  const { logs } = await server.client(LogService).listLogs({});
  const keys = logs[0]?.verifierKeys ?? [];
  for (const [i, name] of ["ed25519", "ml-dsa-44", "ml-dsa-65"].entries())
    writeFileSync(join(place.cwd, `${name}.vkey`), `${keys[i]}\n`);
  const { auditLog } = await kms.getAuditLog({});
  return { ...place, hashes: auditLog.map(({ entryHash }) => entryHash) };
}

const offline = (place: RunOptions): RunOptions => ({ ...place, url: nowhere });
const verify = (args: string, place: RunOptions) =>
  qsp(["log", "verify", ...args.split(" ")], offline(place));

function edit({ cwd }: RunOptions, from: string, to: string, change: (text: string) => string): void {
  writeFileSync(join(cwd, to), change(readFileSync(join(cwd, from), "utf8")));
}

/** Fetches a proof of the first entry once it has been published. */
async function proveFirst(place: RunOptions): Promise<void> {
  await expect
    .poll(async () => (await qsp("log prove audit 0 --out entry.tlog-proof".split(" "), place)).code, {
      timeout,
    })
    .toBe(0);
}

describe("qsp log", { timeout }, () => {
  it("lists the logs with their keys", async () => {
    const place = await makePlace();
    const text = await qspDone(["log", "list"], place);
    expect(text).toMatch(/log +audit\norigin +quantum-safe-playground\/[0-9a-f]{16}\/audit\nkey +quantum/);
    expect(text.match(/^key/gm)).toHaveLength(6);
  });

  it("verify accepts a checkpoint with each key alone, and with all", async () => {
    const place = await makePlace();
    await proveFirst(place);
    await qspDone(["log", "checkpoint", "audit", "--out", "checkpoint"], place);
    for (const keys of [
      "--vkey @ed25519.vkey",
      "--vkey @ml-dsa-44.vkey",
      "--vkey @ml-dsa-65.vkey",
      "--vkey @ed25519.vkey --vkey @ml-dsa-44.vkey --vkey @ml-dsa-65.vkey",
    ])
      expect(await verify(`checkpoint ${keys}`, place)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^Valid: checkpoint of .*\/audit with \d+ entr(?:y|ies)\.\n$/),
      });
  });

  it("verify accepts a proof of an entry with a known hash, and of no other entry", async () => {
    const place = await makePlace();
    await proveFirst(place);
    const [first, second] = place.hashes;
    const key = "--vkey @ml-dsa-44.vkey";
    expect(await verify(`entry.tlog-proof ${key} --leaf ${first}`, place)).toMatchObject({ code: 0 });
    expect(await verify(`entry.tlog-proof ${key} --leaf ${second}`, place)).toMatchObject({
      code: 1,
      stdout: "NOT valid: the proof does not show that this is leaf 0 of the log.\n",
    });
    edit(place, "entry.tlog-proof", "other-index", (text) => text.replace("index 0", "index 1"));
    expect((await verify(`other-index ${key} --leaf ${first}`, place)).code).toBe(1);
    edit(place, "entry.tlog-proof", "other-size", (text) => text.replace(/\n(\d+)\n/, (_, n) => `\n${n}1\n`));
    expect(await verify(`other-size ${key} --leaf ${first}`, place)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/with its ML-DSA-44 cosignature key does not verify/),
    });
  });

  it("prove-growth rejects a file that is not a checkpoint, or is another log's", async () => {
    const place = await makePlace();
    await proveFirst(place);
    await qspDone(["log", "checkpoint", "blockchain", "--out", "other"], place);
    const prove = (file: string) => qsp(["log", "prove-growth", "audit", file, "--out", "growth"], place);
    expect(await prove("other")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is a checkpoint of"),
    });
    for (const text of ["", "junk", "a\n1\nAAAA\n\n— a AAAA\n"]) {
      edit(place, "other", "malformed", () => text);
      expect(await prove("malformed")).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("CHECKPOINT-FILE"),
      });
    }
  });

  it("prove-growth reports a log with fewer entries than the stored checkpoint", async () => {
    const place = await makePlace();
    await proveFirst(place);
    await qspDone(["log", "checkpoint", "audit", "--out", "old"], place);
    edit(place, "old", "later", (text) => text.replace(/\n(\d+)\n/, "\n9999\n"));
    expect(await qsp(["log", "prove-growth", "audit", "later", "--out", "growth"], place)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/NOT valid: the log audit has \d+ entr.*fewer than the 9,999 of later/),
    });
  });

  it("prove-growth does not overwrite a checkpoint that it reads", async () => {
    const place = await makePlace();
    await qspDone(["log", "checkpoint", "audit", "--out", "c"], place);
    const stored = readFileSync(join(place.cwd, "c"), "utf8");
    const { code, stderr } = await qsp(["log", "prove-growth", "audit", "c", "--out", "c"], place);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/--out.*CHECKPOINT-FILE/) });
    expect(readFileSync(join(place.cwd, "c"), "utf8")).toBe(stored);
  });

  it("verify accepts a proof that the log extends a stored checkpoint", async () => {
    const place = await makePlace();
    await proveFirst(place);
    await qspDone(["log", "checkpoint", "audit", "--out", "old"], place);
    await server.client(KmsService).createKey({});
    const key = "--vkey @ml-dsa-65.vkey";
    await qspDone(["log", "prove-growth", "audit", "old", "--out", "growth"], place);
    expect(await verify(`growth ${key} --checkpoint old`, place)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/starts with all \d+ entries of your stored checkpoint/),
    });
    edit(place, "growth", "other-root", (text) => text.replace(/^old \d+/, "old 1"));
    expect((await verify(`other-root ${key} --checkpoint old`, place)).code).toBe(1);
    edit(place, "old", "forged", (text) =>
      text.replace(/\n[^\n]{44}\n/, `\n${Buffer.alloc(32).toString("base64")}\n`),
    );
    expect((await verify(`growth ${key} --checkpoint forged`, place)).code).toBe(1);
  });

  it("verify trusts only the given keys, and only the log with their name", async () => {
    const place = await makePlace();
    await qspDone(["log", "checkpoint", "blockchain", "--out", "blocks"], place);
    expect(await verify("blocks --vkey @ed25519.vkey", place)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/belongs to .*\/blockchain, not .*\/audit/),
    });
    expect(await verify("blocks", place)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--vkey is missing/),
    });
  });

  it("verify names the file or key that it cannot read", async () => {
    const place = await makePlace();
    await proveFirst(place);
    await qspDone(["log", "checkpoint", "audit", "--out", "old"], place);
    await server.client(KmsService).createKey({});
    await qspDone(["log", "prove-growth", "audit", "old", "--out", "growth"], place);
    writeFileSync(join(place.cwd, "nothing"), "hello\n");
    for (const [args, named] of [
      ["nothing --vkey @ed25519.vkey", "qsp: nothing has"],
      ["growth --vkey @ed25519.vkey --checkpoint nothing", "qsp: nothing has"],
      ["growth --vkey @nothing --checkpoint old", "qsp: --vkey: nothing is not a verifier key"],
      ["growth --vkey hello --checkpoint old", "qsp: --vkey: the key is not a verifier key"],
    ] as const)
      expect(await verify(args, place)).toMatchObject({ code: 2, stderr: expect.stringContaining(named) });
    edit(place, "old", "forged", (text) => text.replace(/\n[^\n]{44}\n/, `\n${"A".repeat(43)}=\n`));
    expect(await verify("growth --vkey @ed25519.vkey --checkpoint forged", place)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("NOT valid: forged: "),
    });
  });

  it("leaf computes an entry's leaf from its JSON, and reports an entry that was changed", async () => {
    const place = await makePlace();
    const [first, second = ""] = place.hashes;
    const answer = await qspDone(["kms", "audit", "--json"], place);
    const { auditLog } = JSON.parse(answer);
    writeFileSync(join(place.cwd, "one.json"), JSON.stringify(auditLog[0]));
    writeFileSync(join(place.cwd, "two.json"), JSON.stringify(auditLog[1]));
    const leaf = (...args: string[]) => qsp(["log", "leaf", ...args], { ...offline(place), stdin: answer });
    expect(await leaf("one.json")).toMatchObject({ code: 0, stdout: `${first}\n` });
    expect(await leaf("two.json", "--previous", first ?? "")).toMatchObject({
      code: 0,
      stdout: `${second}\n`,
    });
    expect(await leaf("-", "--sequence", "2")).toMatchObject({ code: 0, stdout: `${second}\n` });
    for (const args of [["two.json"], ["-"], ["-", "--sequence", "9999"], ["two.json", "--previous", "12"]])
      expect(await leaf(...args)).toMatchObject({ code: 2, stdout: "" });
    edit(place, "two.json", "other.json", (text) => text.replace("CREATE", "SIGN"));
    expect(await leaf("other.json", "--previous", first ?? "")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("NOT valid: entry 2 states the hash"),
    });
  });
});
