/**
 * What operator commands leave behind when the disk fails or they are killed (strace injects both), and a command that
 * `ca issue` prints for clients. test/server/tls.test.ts has the handshakes of other clients.
 */

import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openIssuer } from "../../../src/identity/issuer.ts";
import { runWithFault } from "../../faults/strace.ts";
import { isMissing, run } from "../../interop/tools.ts";
import { makeSqlitePlace } from "../../support/on-both.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { listen } from "../qsp.ts";
import {
  contentOf,
  fileIn,
  isPair,
  kinds,
  makeAuthority,
  makeGateway,
  makeOld,
  qsp,
  textOf,
} from "./authority.ts";
import { keysOf, openParts } from "./issuer-place.ts";

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

it.skipIf(isMissing("strace"))(
  `qsp issuer rotate ${title} leaves one signing key with its seed when killed before and after its commit`,
  { timeout },
  async () => {
    const place = await makeSqlitePlace();
    const { parts } = await openParts(place);
    (await openIssuer(parts)).close();
    const outcomes = new Set<string>();
    let before = await keysOf(place);
    // Each run is killed at a disk sync, one sync later than the run before.
    for (let isKilled = true, sync = 1; isKilled; sync += 1) {
      const fault = `fsync,fdatasync:signal=KILL:when=${sync}`;
      const { code } = await runWithFault(fault, "issuer", "rotate", ...place.settings);
      expect([0, 137]).toContain(code);
      isKilled = code === 137;
      const keys = await keysOf(place);
      expect(keys.filter(({ signs }) => signs)).toHaveLength(1);
      expect(keys.filter(({ signs, hasSeed }) => signs !== hasSeed)).toEqual([]);
      outcomes.add(`${isKilled ? "killed" : "ended"} with ${keys.length - before.length} more`);
      before = keys;
      const issuer = await openIssuer(parts);
      expect(await issuer.isWorking()).toBe(true);
      await issuer.close();
    }
    expect(outcomes).toEqual(new Set(["killed with 0 more", "killed with 1 more", "ended with 1 more"]));
  },
);

describe("the commands that ca issue prints for clients", { timeout }, () => {
  it.skipIf(isMissing("curl"))(
    "let curl trust the server, even if the directory has a space and an apostrophe",
    async () => {
      const dataDir = await makeAuthority("the operator's data");
      const text = await qsp(dataDir, "ca", "issue", "localhost", "127.0.0.1");
      const line = text.split("\n").find((each) => each.trim().startsWith("curl"));
      const [cert, key] = [textOf(dataDir, "gateway.crt"), textOf(dataDir, "gateway.key")];
      const server = createServer({ cert, key, minVersion: "TLSv1.3" }, (_, answer) => answer.end("hello"));
      const port = await listen(server);
      const pasted = line?.trim().replace("localhost:8443", `localhost:${port}`) ?? "";
      expect(await run("sh", ["-c", pasted])).toMatchObject({ code: 0, stdout: "hello" });
    },
  );
});
