import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { initAuthorities, issueCertificates } from "../../../src/cli/operator/ca.ts";
import { ConfigError } from "../../../src/config.ts";
import { refusal as cryptoRefusal } from "../../crypto/refusal.ts";
import { runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import {
  authorityFiles,
  certificateIn,
  contentOf,
  fileIn,
  gatewayFiles,
  isPair,
  kinds,
  makeAuthority,
  makeGateway,
  makeOld,
  qsp,
  textOf,
} from "./authority.ts";

const timeout = 180_000;
const dayMs = 24 * 60 * 60 * 1000;

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** A data directory with a directory for a CA, which contains only these empty files. */
function makeIncomplete(...files: string[]): string {
  const dataDir = makeTemporaryDirectory();
  mkdirSync(join(dataDir, "tls"));
  for (const file of files) writeFileSync(fileIn(dataDir, file), "");
  return dataDir;
}

describe("ca init", { timeout }, () => {
  it.each(kinds)(
    "creates a self-signed $algorithm CA that is valid for ten years",
    async ({ algorithm, ca }) => {
      const dataDir = await makeAuthority();
      const certificate = certificateIn(dataDir, ca);
      expect(certificate.subject).toContain(algorithm);
      expect(certificate.ca && certificate.verify(certificate.publicKey) && isPair(dataDir, ca)).toBe(true);
      const years = (certificate.validToDate.getTime() - Date.now()) / dayMs / 365.25;
      expect(years).toBeCloseTo(10, 1);
    },
  );

  it.each([...authorityFiles, "notes"])(
    "refuses a directory that contains only %s, unchanged",
    async (file) => {
      const dataDir = makeIncomplete(file);
      await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
      expect(readdirSync(dataDir, { recursive: true }).sort()).toEqual(["tls", join("tls", file)]);
    },
  );

  it("refuses a data directory that is a file", async () => {
    const dataDir = join(makeTemporaryDirectory(), "file");
    writeFileSync(dataDir, "");
    await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
  });

  it("needs neither a database nor a master key, and accepts an empty directory", async () => {
    const dataDir = makeIncomplete();
    const env = {
      QSP_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
      QSP_MASTER_KEY_FILE: join(dataDir, "missing"),
    };
    for (const words of [["init"], ["issue", "localhost"]])
      expect(await runToEndHere(["ca", ...words, "--data-dir", dataDir], env)).toMatchObject({
        code: 0,
        stderr: "",
      });
    expect(readdirSync(dataDir)).toEqual(["tls"]);
  });

  it("refuses while a concurrent run is in progress", async () => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "tls.draft"));
    await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
    expect(readdirSync(dataDir)).toEqual(["tls.draft"]);
  });
});

describe("ca issue", { timeout }, () => {
  it.each(kinds)(
    "signs an $algorithm certificate for all names, each once, with the first as its subject",
    async ({ ca, gateway }) => {
      const names = ["API.Example.Test", "*.example.test", "api.example.test", "127.0.0.1", "2001:DB8:0::1"];
      const dataDir = await makeGateway(...names, "2001:db8:0:0:0:0:0:1");
      const certificate = certificateIn(dataDir, gateway);
      const authority = certificateIn(dataDir, ca);
      expect(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)).toBe(true);
      expect(isPair(dataDir, gateway)).toBe(true);
      expect(certificate.subject).toBe("CN=api.example.test");
      expect(certificate.subjectAltName).toBe(
        "DNS:api.example.test, DNS:*.example.test, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:1",
      );
    },
  );

  it.each<[string, string[], number]>([
    ["90 days by default", [], 90],
    ["1 day with --days 1", ["--days", "1"], 1],
    ["397 days with --days=397", ["--days=397"], 397],
  ])("is valid for %s", async (_what, flags, days) => {
    const { validToDate } = certificateIn(await makeGateway("localhost", ...flags), "gateway");
    expect((validToDate.getTime() - Date.now()) / dayMs).toBeCloseTo(days, 2);
  });

  it("expires no later than its CA, and is refused once the CA has expired", async () => {
    const dataDir = join(makeTemporaryDirectory(), "data");
    const request = { names: ["localhost"], days: 90, file: "gateway" };
    await initAuthorities(dataDir, new Date("2016-06-01T00:00:00Z"));
    await issueCertificates(dataDir, request, new Date("2026-05-31T00:00:00Z"));
    expect(certificateIn(dataDir, "gateway").validToDate).toEqual(new Date("2026-06-01T00:00:00Z"));
    const before = contentOf(dataDir);
    const late = () => issueCertificates(dataDir, request, new Date("2026-06-01T00:00:00Z"));
    expect(await cryptoRefusal(late)).toBe("INVALID_ARGUMENT");
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("replaces keys and certificates, and sets the mode of new files, whatever the old mode was", async () => {
    const dataDir = await makeGateway();
    for (const file of gatewayFiles) chmodSync(fileIn(dataDir, file), 0o666);
    const before = contentOf(dataDir);
    await qsp(dataDir, "ca", "issue", "localhost");
    const after = contentOf(dataDir);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    const changed = Object.keys(after).filter((path) => after[path] !== before[path]);
    expect(changed.sort()).toEqual(gatewayFiles.map((file) => fileIn(dataDir, file)));
    for (const { gateway } of kinds) expect(isPair(dataDir, gateway)).toBe(true);
    expect(gatewayFiles.map((file) => modeOf(fileIn(dataDir, file)))).toEqual(["644", "600", "644", "600"]);
  });

  it("removes files left over from a run that was killed a while ago", async () => {
    const dataDir = await makeGateway();
    mkdirSync(fileIn(dataDir, "gateway.draft"));
    writeFileSync(join(fileIn(dataDir, "gateway.draft"), "gateway.key"), "never used");
    makeOld(fileIn(dataDir, "gateway.draft"));
    await qsp(dataDir, "ca", "issue", "localhost");
    expect(readdirSync(join(dataDir, "tls")).sort()).toEqual([...authorityFiles, ...gatewayFiles]);
  });

  it.each<[string, (dataDir: string) => unknown]>([
    ...authorityFiles.map((file): [string, (dataDir: string) => unknown] => [
      `if ${file} is missing`,
      (dataDir) => rmSync(fileIn(dataDir, file)),
    ]),
    ["if other users can read ca.key", (dataDir) => chmodSync(fileIn(dataDir, "ca.key"), 0o640)],
    ["if other users can read ca-mldsa.key", (dataDir) => chmodSync(fileIn(dataDir, "ca-mldsa.key"), 0o640)],
    ["while a concurrent run is in progress", (dataDir) => mkdirSync(fileIn(dataDir, "gateway.draft"))],
  ])("refuses, and leaves everything unchanged, %s", async (_what, change) => {
    const dataDir = await makeGateway();
    change(dataDir);
    const before = contentOf(dataDir);
    await expect(qsp(dataDir, "ca", "issue", "localhost")).rejects.toThrow(ConfigError);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it.each(["ca.key", "ca-mldsa.key"])("refuses a %s that belongs to a different CA", async (file) => {
    const dataDir = await makeGateway();
    writeFileSync(fileIn(dataDir, file), textOf(await makeAuthority(), file));
    const before = contentOf(dataDir);
    expect(await cryptoRefusal(() => qsp(dataDir, "ca", "issue", "localhost"))).toBe("INVALID_KEY");
    expect(contentOf(dataDir)).toEqual(before);
  });
});
