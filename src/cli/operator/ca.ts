/** Creates the operator's private CA and issues server certificates. */
import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../../config.ts";
import type { CertificateAndKey } from "../../crypto/x509.ts";
import { maxSmallFileBytes, readFileWithin } from "../../read-file.ts";
import { authorities, directoryIn, hasAuthorityFile, nameFiles, readAuthority } from "./ca-authority.ts";
import { createFilledDirectory, type Files, replaceFiles } from "./ca-files.ts";
import { readServerNames } from "./ca-names.ts";
import { describeTrust } from "./ca-trust.ts";
import type { StoreVerb } from "./store-verb.ts";

/** Maximum validity in days: browsers reject more than 398. */
const maxDays = 397;

const caInit: StoreVerb = {
  line: "ca init",
  meaning:
    "Creates a private CA in tls/ in the data directory, with one certificate for ECDSA-P256 and one for ML-DSA-65.",
  run: ({ config }) => initAuthorities(config.dataDir, new Date()),
};

const caIssue: StoreVerb = {
  line: "ca issue NAME…",
  options: {
    days: { value: "NUMBER", meaning: `Days of validity, 1 to ${maxDays}; default: 90` },
    file: { value: "NAME", meaning: "Base name of the files; default: gateway" },
  },
  meaning: "Issues or renews a server certificate for these host names and IP addresses.",
  example: "qsp ca issue localhost 127.0.0.1 --days 30",
  async run({ operands, options, config }) {
    const days = readDays(options.text("days") ?? "90");
    const request = {
      names: readServerNames(operands),
      days,
      file: readFileName(options.text("file") ?? "gateway"),
    };
    return issueCertificates(config.dataDir, request, new Date());
  },
};

export const caVerbs: readonly StoreVerb[] = [caInit, caIssue];

/** What `ca issue` was asked to issue. */
export interface IssueRequest {
  readonly names: readonly string[];
  readonly days: number;
  /** Base name of the files, without an extension. */
  readonly file: string;
}

/**
 * Implements `ca init`.
 *
 * @throws ConfigError if a CA already exists
 */
export async function initAuthorities(dataDir: string, now: Date): Promise<string> {
  const directory = directoryIn(dataDir);
  if (hasAuthorityFile(directory))
    throw new ConfigError(`${directory} already has a CA, which remains unchanged`);
  if (existsSync(directory) && (!statSync(directory).isDirectory() || readdirSync(directory).length > 0))
    throw new ConfigError(`${directory} is not empty; use an empty or a new directory for the CA`);
  // Loaded on demand: it takes 40 ms, and no other command needs it.
  const { createAuthority } = await import("../../crypto/x509.ts");
  const made = authorities.map(({ algorithm, suffix }) =>
    toFiles("ca", suffix, createAuthority(algorithm, now)),
  );
  createFilledDirectory(directory, Object.assign({}, ...made));
  return `The CA is in ${directory}. Store a copy of its keys elsewhere. Anyone who has them can impersonate any server to its clients.

${describeCertificates(directory, "ca")}

${describeTrust(readTrust(directory))}

Next: qsp ca issue NAME…`;
}

/**
 * Implements `ca issue`.
 *
 * @throws ConfigError, CryptoError if no CA exists or it cannot sign
 */
export async function issueCertificates(
  dataDir: string,
  { names, days, file }: IssueRequest,
  now: Date,
): Promise<string> {
  const directory = directoryIn(dataDir);
  const { issueServerCertificate, openAuthority } = await import("../../crypto/x509.ts");
  const made = authorities.map(({ suffix }) => {
    const authority = openAuthority(readAuthority(directory, suffix));
    return toFiles(file, suffix, issueServerCertificate(authority, { names, days, now }));
  });
  replaceFiles(directory, file, Object.assign({}, ...made));
  return `The certificate for ${names.join(", ")} is in ${directory}.

${describeCertificates(directory, file)}

${describeTrust({ ...readTrust(directory), names })}`;
}

/**
 * Puts the key first: see replaceFiles. Leaves out the CA: clients that trust it already have it (RFC 8446, 4.4.2).
 */
function toFiles(name: string, suffix: string, { certificatePem, secretKeyPem }: CertificateAndKey): Files {
  const { key, certificate } = nameFiles(name, suffix);
  return { [key]: secretKeyPem, [certificate]: certificatePem };
}

function describeCertificates(directory: string, name: string): string {
  return authorities
    .map(({ suffix, meaning }) => {
      const { key, certificate } = nameFiles(name, suffix);
      const path = join(directory, certificate);
      const { validToDate } = new X509Certificate(readFileWithin(path, maxSmallFileBytes));
      return `${path}\n${join(directory, key)}\n  ${meaning}; valid until ${validToDate.toISOString()}`;
    })
    .join("\n");
}

function readTrust(directory: string) {
  return {
    certificates: authorities.map(({ suffix }) => join(directory, nameFiles("ca", suffix).certificate)),
  };
}

/**
 * Parses --days.
 *
 * @throws ConfigError
 */
export function readDays(text: string): number {
  const days = Number(text);
  if (/^\d+$/.test(text) && days >= 1 && days <= maxDays) return days;
  throw new ConfigError(`--days: "${text}" is not a whole number from 1 to ${maxDays}`);
}

function readFileName(text: string): string {
  const isWellFormed = /^[a-z0-9][a-z0-9_-]{0,63}$/.test(text);
  // Other names would collide with the CA's files, or with the ML-DSA file of a different name.
  if (isWellFormed && text !== "ca" && !text.endsWith("-mldsa")) return text;
  throw new ConfigError(
    `--file: "${text}" is not a valid name: use a to z, 0 to 9, - and _, not ca, and no -mldsa at the end`,
  );
}
