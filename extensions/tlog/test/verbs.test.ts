/** `qsp log`: fetches checkpoints and proofs, and verifies them without a server. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { qsp, qspDone, timeout, useServer } from "../../../test/cli/qsp.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const server = useServer();
const cwd = makeTemporaryDirectory(afterAll);
/** Hashes of the first two entries. */
let [first, second] = ["", ""];

const log = (args: string, stdin = "") => qsp(["log", ...args.split(" ")], { cwd, url: server.url, stdin });
/** Runs a command that needs no server. */
const offline = (args: string, stdin = "") =>
  qsp(["log", ...args.split(" ")], { cwd, url: "http://127.0.0.1:1", stdin });
const verify = (args: string) => offline(`verify ${args}`);

/** Writes a changed copy of a file. */
function edit(from: string, to: string, change: (text: string) => string): void {
  writeFileSync(join(cwd, to), change(readFileSync(join(cwd, from), "utf8")));
}

/** Files of a reader: the log's keys, a proof of the first entry, a checkpoint, and a proof of its growth. */
beforeAll(async () => {
  const kms = server.client(KmsService);
  await kms.createKey({});
  await kms.createKey({});
  const { auditLog } = await kms.getAuditLog({});
  [first = "", second = ""] = auditLog.map(({ entryHash }) => entryHash);
  const { logs } = await server.client(LogService).listLogs({});
  for (const [i, name] of ["ed25519", "ml-dsa-44", "ml-dsa-65"].entries())
    writeFileSync(join(cwd, `${name}.vkey`), `${logs[0]?.verifierKeys[i]}\n`);
  const at = { cwd, url: server.url };
  // Until the first entry has been published.
  await vi.waitFor(() => qspDone("log prove audit 0 --out entry.tlog-proof".split(" "), at), { timeout });
  await qspDone("log checkpoint audit --out old".split(" "), at);
  await qspDone("log checkpoint blockchain --out blocks".split(" "), at);
  await kms.createKey({});
  await qspDone("log prove-growth audit old --out growth".split(" "), at);
  writeFileSync(join(cwd, "nothing"), "hello\n");
  writeFileSync(join(cwd, "malformed"), "a\n1\nAAAA\n\n— a AAAA\n");
  edit("entry.tlog-proof", "other-index", (text) => text.replace("index 0", "index 1"));
  edit("entry.tlog-proof", "other-size", (text) => text.replace(/\n(\d+)\n/, "\n$11\n"));
  edit("growth", "other-root", (text) => text.replace(/^old \d+/, "old 1"));
  edit("old", "forged", (text) => text.replace(/\n[^\n]{44}\n/, `\n${"A".repeat(43)}=\n`));
  edit("old", "later", (text) => text.replace(/\n(\d+)\n/, "\n9999\n"));
}, timeout);

describe("qsp log", { timeout }, () => {
  const [ed25519, mlDsa44, mlDsa65] = ["ed25519", "ml-dsa-44", "ml-dsa-65"].map(
    (name) => `--vkey @${name}.vkey`,
  );
  it.each([ed25519, mlDsa44, mlDsa65, `${ed25519} ${mlDsa44} ${mlDsa65}`])(
    "verify accepts a checkpoint with %s",
    async (keys) => {
      const stdout = expect.stringMatching(/^Valid: checkpoint of .*\/audit with \d+ entr(?:y|ies)\.\n$/);
      expect(await verify(`old ${keys}`)).toMatchObject({ code: 0, stdout });
    },
  );

  it("verify accepts a proof of an entry with a known hash, and of no other entry", async () => {
    expect(await verify(`entry.tlog-proof ${mlDsa44} --leaf ${first}`)).toMatchObject({ code: 0 });
    expect(await verify(`entry.tlog-proof ${mlDsa44} --leaf ${second}`)).toMatchObject({
      code: 1,
      stdout: "NOT valid: the proof does not show that this is leaf 0 of the log.\n",
    });
    expect((await verify(`other-index ${mlDsa44} --leaf ${first}`)).code).toBe(1);
    expect(await verify(`other-size ${mlDsa44} --leaf ${first}`)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/with its ML-DSA-44 cosignature key does not verify/),
    });
  });

  it("verify accepts a proof that the log extends a stored checkpoint, and no other checkpoint", async () => {
    expect(await verify(`growth ${mlDsa65} --checkpoint old`)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/starts with all \d+ entries of your stored checkpoint/),
    });
    expect((await verify(`other-root ${mlDsa65} --checkpoint old`)).code).toBe(1);
    expect(await verify(`growth ${mlDsa65} --checkpoint forged`)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("NOT valid: forged: "),
    });
  });

  it("verify trusts only the log with the key's name", async () => {
    const stdout = expect.stringMatching(/belongs to .*\/blockchain, not .*\/audit/);
    expect(await verify(`blocks ${ed25519}`)).toMatchObject({ code: 1, stdout });
  });

  it.each([
    ["verify blocks", "--vkey is missing"],
    ["verify nothing --vkey @ed25519.vkey", "qsp: nothing has"],
    ["verify growth --vkey @ed25519.vkey --checkpoint nothing", "qsp: nothing has"],
    ["verify growth --vkey @nothing --checkpoint old", "qsp: --vkey: nothing is not a verifier key"],
    ["verify growth --vkey hello --checkpoint old", "qsp: --vkey: the key is not a verifier key"],
    ["prove-growth audit blocks --out unwritten", "is a checkpoint of"],
    ["prove-growth audit nothing --out unwritten", "CHECKPOINT-FILE"],
    ["prove-growth audit malformed --out unwritten", "CHECKPOINT-FILE"],
    ["prove-growth audit old --out old", "--out.*CHECKPOINT-FILE"],
  ])("%s names what it cannot use", async (args, named) => {
    const stderr = expect.stringMatching(named);
    expect(await log(args)).toMatchObject({ code: 2, stdout: "", stderr });
  });

  it("prove-growth reports a log with fewer entries than the stored checkpoint", async () => {
    expect(await log("prove-growth audit later --out unwritten")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/NOT valid: the log audit has \d+ entr.*fewer than the 9,999 of later/),
    });
  });

  it("leaf computes an entry's leaf from its JSON, and reports an entry that was changed", async () => {
    const answer = await qspDone(["kms", "audit", "--json"], { cwd, url: server.url });
    const { auditLog } = JSON.parse(answer);
    writeFileSync(join(cwd, "one.json"), JSON.stringify(auditLog[0]));
    writeFileSync(join(cwd, "two.json"), JSON.stringify(auditLog[1]));
    edit("two.json", "other.json", (text) => text.replace("CREATE", "SIGN"));
    const leaf = (args: string) => offline(`leaf ${args}`, answer);
    for (const [args, hash] of [
      ["one.json", first],
      [`two.json --previous ${first}`, second],
      ["- --sequence 2", second],
    ] as const)
      expect(await leaf(args)).toMatchObject({ code: 0, stdout: `${hash}\n` });
    for (const args of ["two.json", "-", "- --sequence 9999", "two.json --previous 12"])
      expect(await leaf(args)).toMatchObject({ code: 2, stdout: "" });
    expect(await leaf(`other.json --previous ${first}`)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("NOT valid: entry 2 states the hash"),
    });
  });
});
