/** What `ca init` and `ca issue` leave behind when the disk fails or they are killed; strace injects both. */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runWithFault } from "../../faults/strace.ts";
import { isMissing } from "../../interop/tools.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import {
  authorityFiles,
  contentOf,
  fileIn,
  gatewayFiles,
  isPair,
  kinds,
  makeAuthority,
  makeGateway,
  makeOld,
  qsp,
} from "./authority.ts";

const timeout = 180_000;

const title = isMissing("strace") ? "needs strace, which is not installed" : "that meets a fault";

describe.skipIf(isMissing("strace"))(`ca issue ${title}`, { timeout }, () => {
  it.each(["1", "2", "3", "4"])("restores the old files when rename %s of 4 fails", async (when) => {
    const dataDir = await makeGateway();
    const before = contentOf(dataDir);
    const args = ["ca", "issue", "localhost", "--data-dir", dataDir];
    expect(await runWithFault(`rename:error=EIO:when=${when}`, ...args)).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: [^\n]* cannot be written: its disk reports an error[^\n]*\n$/),
    });
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("leaves no file of a first certificate when the last rename fails", async () => {
    const dataDir = await makeAuthority();
    const before = contentOf(dataDir);
    const args = ["ca", "issue", "localhost", "--data-dir", dataDir];
    expect((await runWithFault("rename:error=EIO:when=4", ...args)).code).toBe(2);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("leaves the old files when the disk is full", async () => {
    const dataDir = await makeGateway();
    const before = contentOf(dataDir);
    // The first file that is synced is a draft.
    const args = ["ca", "issue", "localhost", "--data-dir", dataDir];
    expect((await runWithFault("fsync:error=ENOSPC:when=1", ...args)).code).toBe(4);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("leaves the old pairs when killed before the first rename, and succeeds on the next run", async () => {
    const dataDir = await makeGateway();
    const before = contentOf(dataDir);
    await runWithFault("rename:signal=KILL:when=1", "ca", "issue", "localhost", "--data-dir", dataDir);
    expect(existsSync(fileIn(dataDir, "gateway.draft"))).toBe(true);
    expect(contentOf(dataDir)).toMatchObject(before);

    makeOld(fileIn(dataDir, "gateway.draft"));
    await qsp(dataDir, "ca", "issue", "localhost");
    expect(readdirSync(join(dataDir, "tls")).sort()).toEqual([...authorityFiles, ...gatewayFiles]);
  });

  it("is repaired by the next run when killed between a key and its certificate", async () => {
    const dataDir = await makeGateway();
    await runWithFault("rename:signal=KILL:when=2", "ca", "issue", "localhost", "--data-dir", dataDir);
    expect(kinds.map(({ gateway }) => isPair(dataDir, gateway))).toEqual([false, true]);

    makeOld(fileIn(dataDir, "gateway.draft"));
    await qsp(dataDir, "ca", "issue", "localhost");
    expect(kinds.map(({ gateway }) => isPair(dataDir, gateway))).toEqual([true, true]);
  });
});

describe.skipIf(isMissing("strace"))(`ca init ${title}`, { timeout }, () => {
  it("leaves nothing behind when the rename fails", async () => {
    const dataDir = makeTemporaryDirectory();
    expect((await runWithFault("rename:error=EIO:when=1", "ca", "init", "--data-dir", dataDir)).code).toBe(2);
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it("leaves no CA when killed, and creates one on the next run", async () => {
    const dataDir = makeTemporaryDirectory();
    await runWithFault("rename:signal=KILL:when=1", "ca", "init", "--data-dir", dataDir);
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
    const { code, stdout } = await runWithFault(
      "rename:error=ENOTEMPTY:when=1",
      "ca",
      "init",
      "--data-dir",
      dataDir,
    );
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(readdirSync(dataDir)).toEqual(["tls"]);
  });
});
