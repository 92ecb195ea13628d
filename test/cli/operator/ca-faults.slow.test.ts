/** What `ca init` and `ca issue` leave behind when the disk fails or they are killed; strace injects both. */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runWithFault } from "../../faults/strace.ts";
import { isMissing } from "../../interop/tools.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { contentOf, fileIn, isPair, kinds, makeAuthority, makeGateway, makeOld, qsp } from "./authority.ts";

const timeout = 180_000;

const title = isMissing("strace") ? "needs strace, which is not installed" : "that meets a fault";

const initWith = (fault: string, dataDir: string) => runWithFault(fault, "ca", "init", "--data-dir", dataDir);
const issueWith = (fault: string, dataDir: string) =>
  runWithFault(fault, "ca", "issue", "localhost", "--data-dir", dataDir);

describe.skipIf(isMissing("strace"))(`ca issue ${title}`, { timeout }, () => {
  it.each(["1", "2", "3", "4"])("restores the old files when rename %s of 4 fails", async (when) => {
    const dataDir = await makeGateway();
    const before = contentOf(dataDir);
    expect(await issueWith(`rename:error=EIO:when=${when}`, dataDir)).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: [^\n]* cannot be written: its disk reports an error[^\n]*\n$/),
    });
    expect(contentOf(dataDir)).toEqual(before);
  });

  it.each([
    [
      "no file of a first certificate when the last rename fails",
      "rename:error=EIO:when=4",
      2,
      makeAuthority,
    ],
    // The first file that is synced is a draft.
    ["the old files when the disk is full", "fsync:error=ENOSPC:when=1", 4, makeGateway],
  ] as const)("leaves %s", async (_what, fault, code, make) => {
    const dataDir = await make();
    const before = contentOf(dataDir);
    expect((await issueWith(fault, dataDir)).code).toBe(code);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it.each([
    ["before the first rename", 1, [true, true]],
    ["between a key and its certificate", 2, [false, true]],
  ])("is repaired by the next run when killed %s", async (_when, rename, left) => {
    const dataDir = await makeGateway();
    const arePairs = () => kinds.map(({ gateway }) => isPair(dataDir, gateway));
    await issueWith(`rename:signal=KILL:when=${rename}`, dataDir);
    const draft = fileIn(dataDir, "gateway.draft");
    expect([existsSync(draft), arePairs()]).toEqual([true, left]);
    makeOld(draft);
    await qsp(dataDir, "ca", "issue", "localhost");
    expect([existsSync(draft), arePairs()]).toEqual([false, [true, true]]);
  });
});

describe.skipIf(isMissing("strace"))(`ca init ${title}`, { timeout }, () => {
  it("leaves nothing behind when the rename fails", async () => {
    const dataDir = makeTemporaryDirectory();
    expect((await initWith("rename:error=EIO:when=1", dataDir)).code).toBe(2);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it("leaves no CA when killed, and creates one on the next run", async () => {
    const dataDir = makeTemporaryDirectory();
    await initWith("rename:signal=KILL:when=1", dataDir);
    expect(readdirSync(dataDir)).toEqual(["tls.draft"]);
    makeOld(join(dataDir, "tls.draft"));
    await qsp(dataDir, "ca", "init");
    expect(readdirSync(dataDir)).toEqual(["tls"]);
    expect(kinds.map(({ ca }) => isPair(dataDir, ca))).toEqual([true, true]);
  });

  it("creates no second CA when a concurrent run was faster", async () => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "tls"));
    // The error that rename returns for a directory that was filled in the meantime.
    expect(await initWith("rename:error=ENOTEMPTY:when=1", dataDir)).toMatchObject({ code: 2, stdout: "" });
    expect(readdirSync(dataDir)).toEqual(["tls"]);
  });
});
