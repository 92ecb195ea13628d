/** Data directories with a CA, created by `ca init` and `ca issue`. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { readVerbLine } from "../../../src/cli/command-line/options.ts";
import { openFiles } from "../../../src/cli/files/open.ts";
import { loadVerb } from "../../../src/cli/groups.ts";
import type { VerbInput } from "../../../src/cli/verb.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { verbTable } from "../../support/whole-program.ts";

export const authorityFiles = ["ca-mldsa.crt", "ca-mldsa.key", "ca.crt", "ca.key"];
export const gatewayFiles = ["gateway-mldsa.crt", "gateway-mldsa.key", "gateway.crt", "gateway.key"];
/** Base names of a certificate and its key, for each algorithm. */
export const kinds = [
  { algorithm: "ECDSA-P256", ca: "ca", gateway: "gateway" },
  { algorithm: "ML-DSA-65", ca: "ca-mldsa", gateway: "gateway-mldsa" },
] as const;

/** Runs a verb in this process, which is faster, and returns its output. */
export async function qsp(dataDir: string, ...args: string[]): Promise<string> {
  const verb = await loadVerb(verbTable, args);
  if (verb === undefined) throw new Error("no such verb");
  const words = args.slice(verb.name.split(" ").length);
  // Operator verbs use no other part of their input.
  const line = readVerbLine(verb, [...words, "--data-dir", dataDir]);
  const input = { ...line, files: openFiles(verb, line) } as VerbInput;
  return printed(() => verb.run(input));
}

export async function printed(act: () => Promise<unknown>): Promise<string> {
  const spy = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    expect(await act()).toBe(0);
    return spy.mock.calls.map(([chunk]) => chunk).join("");
  } finally {
    spy.mockRestore();
  }
}

/** A data directory with a CA. */
export async function makeAuthority(name = "data"): Promise<string> {
  const dataDir = join(makeTemporaryDirectory(), name);
  await qsp(dataDir, "ca", "init");
  return dataDir;
}

/** A data directory with a CA and a gateway certificate. */
export async function makeGateway(...args: string[]): Promise<string> {
  const dataDir = await makeAuthority();
  await qsp(dataDir, "ca", "issue", ...(args.length > 0 ? args : ["localhost", "127.0.0.1"]));
  return dataDir;
}

export const fileIn = (dataDir: string, file: string): string => join(dataDir, "tls", file);
export const textOf = (dataDir: string, file: string): string => readFileSync(fileIn(dataDir, file), "utf8");
export const certificateIn = (dataDir: string, name: string): X509Certificate =>
  new X509Certificate(textOf(dataDir, `${name}.crt`));
/** Returns whether a certificate and the key next to it belong together. */
export const isPair = (dataDir: string, name: string): boolean =>
  certificateIn(dataDir, name).checkPrivateKey(createPrivateKey(textOf(dataDir, `${name}.key`)));

/** Reads all files of the directory, by name. */
export function contentOf(dataDir: string): Readonly<Record<string, string>> {
  const names = readdirSync(join(dataDir, "tls"), { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    names.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path, entry.isFile() ? readFileSync(path, "utf8") : "a directory"];
    }),
  );
}

/** Makes a draft look left over from a run that was killed some time ago. */
export function makeOld(path: string): void {
  const longAgo = new Date(Date.now() - 3_600_000);
  utimesSync(path, longAgo, longAgo);
}
