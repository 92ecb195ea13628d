import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CliError } from "../../../src/cli/exit-codes.ts";
import { initAuthorities, issueCertificates } from "../../../src/cli/operator/ca.ts";
import { ConfigError } from "../../../src/config.ts";
import { refusal as cryptoRefusal } from "../../crypto/refusal.ts";
import { runToEndHere } from "../../support/run-here.ts";
import { runToEnd } from "../../support/start-server.ts";
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

/** The base64 of the key files, line by line. */
function keyLinesIn(dataDir: string): readonly string[] {
  const names = readdirSync(join(dataDir, "tls")).filter((name) => name.endsWith(".key"));
  return names.flatMap((name) => textOf(dataDir, name).split("\n").slice(1, -2));
}

describe("ca init", { timeout }, () => {
  it.each(kinds)(
    "makes a CA of $algorithm that signs itself and lasts ten years",
    async ({ algorithm, ca }) => {
      const dataDir = await makeAuthority();
      const certificate = certificateIn(dataDir, ca);
      expect(certificate.subject).toContain(algorithm);
      expect(certificate.ca && certificate.verify(certificate.publicKey) && isPair(dataDir, ca)).toBe(true);
      const years = (certificate.validToDate.getTime() - Date.now()) / dayMs / 365.25;
      expect(years).toBeCloseTo(10, 1);
    },
  );

  it("keeps the directory and the keys to their owner, and makes nothing else", async () => {
    const dataDir = await makeAuthority();
    expect(readdirSync(dataDir)).toEqual(["tls"]);
    expect(readdirSync(join(dataDir, "tls")).sort()).toEqual(authorityFiles);
    expect([dataDir, join(dataDir, "tls")].map(modeOf)).toEqual(["700", "700"]);
    expect(authorityFiles.map((file) => modeOf(fileIn(dataDir, file)))).toEqual(["644", "600", "644", "600"]);
  });

  it("prints the files, when they end, fingerprints and the lines of clients; no key", async () => {
    const dataDir = join(makeTemporaryDirectory(), "data");
    const text = await qsp(dataDir, "ca", "init");
    for (const { ca } of kinds) {
      expect(text).toContain(certificateIn(dataDir, ca).validToDate.toISOString());
      expect(text).toContain(certificateIn(dataDir, ca).fingerprint256);
    }
    for (const file of authorityFiles) expect(text).toContain(fileIn(dataDir, file));
    for (const word of ["curl --cacert", "grpcurl -cacert", "NODE_EXTRA_CA_CERTS="])
      expect(text).toContain(`${word}${word.endsWith("=") ? "" : " "}${fileIn(dataDir, "ca.crt")} `);
    expect(keyLinesIn(dataDir).filter((line) => text.includes(line))).toEqual([]);
  });

  it.each(authorityFiles)("refuses where only %s is left of a CA, and leaves it", async (file) => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "tls"));
    writeFileSync(fileIn(dataDir, file), "kept");
    const before = contentOf(dataDir);
    await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("ends with 2 and one sentence where there is a CA, and leaves it", async () => {
    const dataDir = await makeAuthority();
    const before = contentOf(dataDir);
    expect(await runToEnd(["ca", "init", "--data-dir", dataDir])).toEqual({
      code: 2,
      signal: null,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: \S+ already has a CA[^\n]*\n$/),
    });
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("takes an empty directory", async () => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "tls"));
    await qsp(dataDir, "ca", "init");
    expect(isPair(dataDir, "ca")).toBe(true);
  });

  it("refuses a directory with something else in it, and adds nothing", async () => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "tls"));
    writeFileSync(fileIn(dataDir, "notes"), "");
    await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
    expect(readdirSync(dataDir, { recursive: true }).sort()).toEqual(["tls", join("tls", "notes")]);
  });

  it("refuses a data directory that is a file", async () => {
    const dataDir = join(makeTemporaryDirectory(), "file");
    writeFileSync(dataDir, "");
    await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
  });

  it("asks neither for a database nor for a master key", async () => {
    const dataDir = join(makeTemporaryDirectory(), "data");
    const env = {
      QSP_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
      QSP_MASTER_KEY_FILE: join(dataDir, "missing"),
    };
    expect(await runToEndHere(["ca", "init", "--data-dir", dataDir], env)).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect(await runToEndHere(["ca", "issue", "localhost", "--data-dir", dataDir], env)).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect(readdirSync(dataDir)).toEqual(["tls"]);
  });

  it("refuses while another run is about it", async () => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "tls.draft"));
    await expect(qsp(dataDir, "ca", "init")).rejects.toThrow(ConfigError);
    expect(readdirSync(dataDir)).toEqual(["tls.draft"]);
  });

  it("takes an operand for a mistake", async () => {
    await expect(qsp(makeTemporaryDirectory(), "ca", "init", "localhost")).rejects.toThrow(CliError);
  });
});

describe("ca issue", { timeout }, () => {
  it.each(kinds)(
    "signs a certificate of $algorithm for all names, the first as subject",
    async ({ ca, gateway }) => {
      const names = ["API.Example.Test", "*.example.test", "localhost", "127.0.0.1", "2001:DB8:0::1"];
      const dataDir = await makeGateway(...names);
      const certificate = certificateIn(dataDir, gateway);
      const authority = certificateIn(dataDir, ca);
      expect(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)).toBe(true);
      expect(isPair(dataDir, gateway)).toBe(true);
      expect(certificate.subject).toBe("CN=api.example.test");
      for (const host of ["api.example.test", "www.example.test", "localhost"])
        expect(certificate.checkHost(host)).toBeDefined();
      for (const address of ["127.0.0.1", "2001:db8::1"]) expect(certificate.checkIP(address)).toBeDefined();
      expect([certificate.checkHost("example.test"), certificate.checkIP("127.0.0.2")]).toEqual([
        undefined,
        undefined,
      ]);
    },
  );

  it("keeps the keys to their owner, and leaves the CA and nothing else beside", async () => {
    const dataDir = await makeAuthority();
    const before = contentOf(dataDir);
    await qsp(dataDir, "ca", "issue", "localhost");
    expect(readdirSync(join(dataDir, "tls")).sort()).toEqual([...authorityFiles, ...gatewayFiles]);
    expect(gatewayFiles.map((file) => modeOf(fileIn(dataDir, file)))).toEqual(["644", "600", "644", "600"]);
    expect(contentOf(dataDir)).toMatchObject(before);
  });

  it("puts a name that is given twice into the certificate once", async () => {
    const dataDir = await makeGateway("a.test", "A.test", "::1", "0:0:0:0:0:0:0:1");
    expect(certificateIn(dataDir, "gateway").subjectAltName).toBe("DNS:a.test, IP Address:0:0:0:0:0:0:0:1");
  });

  it.each<[string, string[], number]>([
    ["90 days by default", [], 90],
    ["1 day with --days 1", ["--days", "1"], 1],
    ["397 days with --days=397", ["--days=397"], 397],
  ])("lasts %s", async (_what, flags, days) => {
    const { validToDate } = certificateIn(await makeGateway("localhost", ...flags), "gateway");
    expect((validToDate.getTime() - Date.now()) / dayMs).toBeCloseTo(days, 2);
  });

  it("shows its options and their defaults in the help", async () => {
    const { code, stdout } = await runToEndHere(["ca", "issue", "--help"]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /ca issue \[?NAME….*\n +--days NUMBER .*default: 90\n +--file NAME .*default: gateway/s,
      ),
    });
  });

  it("writes the files that --file names, for another server", async () => {
    const dataDir = await makeGateway();
    const before = contentOf(dataDir);
    await qsp(dataDir, "ca", "issue", "db.test", "--file", "database");
    expect(contentOf(dataDir)).toMatchObject(before);
    expect(certificateIn(dataDir, "database").subject).toBe("CN=db.test");
    expect([isPair(dataDir, "database"), isPair(dataDir, "database-mldsa")]).toEqual([true, true]);
  });

  it("prints the files, when they end and the lines of clients; no key", async () => {
    const dataDir = await makeAuthority();
    const text = await qsp(dataDir, "ca", "issue", "*.a.test", "b.test");
    for (const file of gatewayFiles) expect(text).toContain(fileIn(dataDir, file));
    expect(text).toContain(certificateIn(dataDir, "gateway").validToDate.toISOString());
    expect(text).toContain(certificateIn(dataDir, "ca").fingerprint256);
    expect(text).toContain(`curl --cacert ${fileIn(dataDir, "ca.crt")} https://b.test:`);
    expect(keyLinesIn(dataDir).filter((line) => text.includes(line))).toEqual([]);
  });

  it("ends with its CA where it would outlive it, and is refused once that has ended", async () => {
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
});

describe("ca issue, again", { timeout }, () => {
  it("replaces keys and certificates by others", async () => {
    const dataDir = await makeGateway();
    const before = contentOf(dataDir);
    await qsp(dataDir, "ca", "issue", "localhost");
    const after = contentOf(dataDir);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    const changed = Object.keys(after).filter((path) => after[path] !== before[path]);
    expect(changed.sort()).toEqual(gatewayFiles.map((file) => fileIn(dataDir, file)));
    for (const { gateway } of kinds) expect(isPair(dataDir, gateway)).toBe(true);
  });

  it("goes for the mode of new files, whatever those before had", async () => {
    const dataDir = await makeGateway();
    for (const file of gatewayFiles) chmodSync(fileIn(dataDir, file), 0o666);
    await qsp(dataDir, "ca", "issue", "localhost");
    expect(gatewayFiles.map((file) => modeOf(fileIn(dataDir, file)))).toEqual(["644", "600", "644", "600"]);
  });

  it("refuses while another run is about it, and leaves all as it is", async () => {
    const dataDir = await makeGateway();
    mkdirSync(fileIn(dataDir, "gateway.draft"));
    const before = contentOf(dataDir);
    await expect(qsp(dataDir, "ca", "issue", "localhost")).rejects.toThrow(ConfigError);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("removes what a run left that was killed a while ago", async () => {
    const dataDir = await makeGateway();
    mkdirSync(fileIn(dataDir, "gateway.draft"));
    writeFileSync(join(fileIn(dataDir, "gateway.draft"), "gateway.key"), "never used");
    makeOld(fileIn(dataDir, "gateway.draft"));
    await qsp(dataDir, "ca", "issue", "localhost");
    expect(readdirSync(join(dataDir, "tls")).sort()).toEqual([...authorityFiles, ...gatewayFiles]);
  });
});

describe("ca issue refuses, and leaves all as it is,", { timeout }, () => {
  const names: Readonly<Record<string, string>> = {
    "an empty name": "",
    "a name with a space": "a b.test",
    "a name with an underscore": "a_b.test",
    "a name with an empty part": "a..test",
    "a name that ends with a dot": "a.test.",
    "a name that begins with a dot": ".a.test",
    "a part that ends with a hyphen": "a-.test",
    "a part of 64 characters": `${"a".repeat(64)}.test`,
    "a name of 254 characters": `${"a.".repeat(125)}test`,
    "a name beyond ASCII": "zürich.test",
    "a URL": "https://a.test",
    "a host with a port": "localhost:8443",
    "a wildcard for everything": "*",
    "a wildcard for a top level": "*.test",
    "a wildcard within a part": "a*.a.test",
    "a wildcard that is not the first part": "a.*.test",
    "an address out of range": "256.0.0.1",
    "an address of three parts": "127.0.1",
    "an address in hexadecimal": "127.0.0.0x1",
    "an address with a length": "10.0.0.0/8",
    "an IPv6 address in brackets": "[::1]",
    "an IPv6 address with a zone": "fe80::1%eth0",
    "a line break": "a.test\nb.test",
    "a zero byte": "a.test\0.b.test",
  };
  it.each(Object.entries(names))("%s, which it names", async (_what, name) => {
    const dataDir = await makeAuthority();
    const before = contentOf(dataDir);
    const error = await qsp(dataDir, "ca", "issue", "localhost", name).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toContain(JSON.stringify(name));
    expect(contentOf(dataDir)).toEqual(before);
  });

  const long = `${"a".repeat(60)}.test`;
  const lines: Readonly<Record<string, readonly string[]>> = {
    "no name": [],
    "a first name longer than a subject may be": [long, "localhost"],
    "101 names": Array.from({ length: 101 }, (_, i) => `n${i}.test`),
    "0 days": ["localhost", "--days", "0"],
    "398 days": ["localhost", "--days", "398"],
    "days that are no number": ["localhost", "--days", "ninety"],
    "days with a fraction": ["localhost", "--days", "1.5"],
    "days in hexadecimal": ["localhost", "--days", "0x10"],
    "days without a number": ["localhost", "--days"],
    "a setting for a number of days": ["localhost", "--days", "--port"],
    "the files of the CA": ["localhost", "--file", "ca"],
    "the ML-DSA files of the CA": ["localhost", "--file", "ca-mldsa"],
    "the ML-DSA files of another": ["localhost", "--file", "gateway-mldsa"],
    "a file elsewhere": ["localhost", "--file", "../gateway"],
    "an empty file name": ["localhost", "--file", ""],
    "an unknown flag": ["localhost", "--out", "here"],
  };
  it.each(Object.entries(lines))("%s", async (_what, args) => {
    const dataDir = await makeAuthority();
    const before = contentOf(dataDir);
    await expect(qsp(dataDir, "ca", "issue", ...args)).rejects.toSatisfy(
      (error) => error instanceof ConfigError || error instanceof CliError,
    );
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("a data directory without a CA, which it does not make", async () => {
    const dataDir = join(makeTemporaryDirectory(), "data");
    await expect(qsp(dataDir, "ca", "issue", "localhost")).rejects.toThrow(ConfigError);
    expect(existsSync(dataDir)).toBe(false);
  });

  it.each(authorityFiles)("a CA without %s", async (file) => {
    const dataDir = await makeGateway();
    rmSync(fileIn(dataDir, file));
    const before = contentOf(dataDir);
    await expect(qsp(dataDir, "ca", "issue", "localhost")).rejects.toThrow(ConfigError);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it.each(["ca.key", "ca-mldsa.key"])("a %s that others can read", async (file) => {
    const dataDir = await makeGateway();
    chmodSync(fileIn(dataDir, file), 0o640);
    const before = contentOf(dataDir);
    await expect(qsp(dataDir, "ca", "issue", "localhost")).rejects.toThrow(ConfigError);
    expect(contentOf(dataDir)).toEqual(before);
  });

  it.each(["ca.key", "ca-mldsa.key"])("a %s of another CA", async (file) => {
    const dataDir = await makeGateway();
    writeFileSync(fileIn(dataDir, file), textOf(await makeAuthority(), file));
    const before = contentOf(dataDir);
    expect(await cryptoRefusal(() => qsp(dataDir, "ca", "issue", "localhost"))).toBe("INVALID_KEY");
    expect(contentOf(dataDir)).toEqual(before);
  });

  it("a bad name with exit code 2 and one sentence", async () => {
    const dataDir = await makeAuthority();
    expect(await runToEndHere(["ca", "issue", "a b", "--data-dir", dataDir])).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: "a b" is neither a host name[^\n]*\n$/),
    });
  });

  it("a broken CA with exit code 2 and one sentence, which tells nothing of the key", async () => {
    const dataDir = await makeAuthority();
    const path = fileIn(dataDir, "ca.key");
    writeFileSync(path, textOf(dataDir, "ca.key").replace("-----END", "-----FINIS"));
    const { code, stdout, stderr } = await runToEndHere(["ca", "issue", "localhost", "--data-dir", dataDir]);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^qsp: [^\n]*\n$/),
    });
    expect(keyLinesIn(dataDir).filter((line) => stderr.includes(line))).toEqual([]);
  });
});
