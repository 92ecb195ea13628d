/**
 * Issues certificates from other people's CSRs (PKCS#10). A CSR only proves that its sender has the key. Only
 * the operator knows whose key it is, so the certificate contains only names that the operator chose.
 */
import { X509Certificate } from "node:crypto";
import { inputFile, type Options, type ParsedOptions } from "../../src/cli/command-line/options.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import type { VerbFiles } from "../../src/cli/files/open.ts";
import { gather, readChunks } from "../../src/cli/files/read.ts";
import { withProvider } from "../../src/cli/keys/read-keys.ts";
import { authorities, directoryIn, readAuthority } from "../../src/cli/operator/ca-authority.ts";
import { facts, harmless } from "../../src/cli/output/output.ts";
import { ConfigError } from "../../src/config.ts";
import {
  type AlternativeName,
  formatAlternativeName,
  maxAlternativeNames,
  parseAlternativeName,
} from "../../src/crypto/alternative-names.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import {
  type DistinguishedName,
  formatDistinguishedName,
  parseDistinguishedName,
} from "../../src/crypto/distinguished-name.ts";
import type { CertificatePurpose } from "../../src/crypto/x509.ts";
import type { CertificateRequest } from "./read-certificate-request.ts";

const copyable = ["subject", "names"] as const;
const purposes = ["code", "document", "email", "client", "server"] as const satisfies CertificatePurpose[];

/** Options of `ca issue` that need a certificate request. */
export const requestOptions = {
  csr: inputFile("Certificate request (CSR, PEM or DER) to issue a certificate for; - for standard input"),
  copy: {
    value: "PART",
    meaning: "Copies subject or names from the request; repeatable",
    isMany: true,
    offers: copyable,
  },
  subject: { value: "NAME", meaning: "Subject (RFC 4514) to use instead of the requested one" },
  name: {
    value: "KIND:NAME",
    meaning:
      "Name to use instead of the requested ones, such as dns:a.example; kinds: dns, ip, email, uri; repeatable",
    isMany: true,
  },
  purpose: {
    value: "PURPOSE",
    meaning: "What the key is for: code, document, email, client or server; repeatable",
    isMany: true,
    offers: purposes,
  },
  out: { value: "FILE", meaning: "New file for the issued certificate (PEM)", file: "creates" },
} as const satisfies Options;

/** The operator's decisions about a CSR. */
export interface RequestChoice {
  /** Path of the CSR. */
  readonly csr: string;
  /** "copy" takes the requested one; undefined leaves it out. */
  readonly subject: DistinguishedName | "copy" | undefined;
  readonly names: readonly AlternativeName[] | "copy" | undefined;
  readonly purposes: readonly CertificatePurpose[];
}

/**
 * Parses the options for a CSR.
 *
 * @returns undefined without --csr
 * @throws CliError for options that contradict each other
 */
export function readRequestChoice(
  operands: readonly string[],
  options: ParsedOptions,
): RequestChoice | undefined {
  const csr = options.text("csr");
  if (csr === undefined) {
    const stray = Object.keys(requestOptions).find((name) => options.flag(name));
    if (stray !== undefined) throw usageError(`--${stray} needs --csr FILE`);
    return undefined;
  }
  if (operands.length > 0)
    throw usageError(
      `with --csr, a name needs a kind; use --name dns:${operands[0]} or --name ip:${operands[0]}`,
    );
  if (options.flag("file")) throw usageError("--file cannot be combined with --csr; use --out FILE");
  const copied = options.all("copy").map((part) => readWord("copy", copyable, part));
  const given = options.all("name").map((name) => readName("name", () => parseAlternativeName(name)));
  if (given.length > maxAlternativeNames)
    throw usageError(`--name: use at most ${maxAlternativeNames} names`);
  const subject = options.text("subject");
  if (subject !== undefined && copied.includes("subject"))
    throw usageError("use one of --subject and --copy subject");
  if (given.length > 0 && copied.includes("names")) throw usageError("use one of --name and --copy names");
  options.need("out");
  return {
    csr,
    subject: copied.includes("subject") ? "copy" : readSubject(subject),
    names: copied.includes("names") ? "copy" : given.length > 0 ? given : undefined,
    purposes: readPurposes(options),
  };
}

function readSubject(text: string | undefined): DistinguishedName | undefined {
  return text === undefined ? undefined : readName("subject", () => parseDistinguishedName(text));
}

/**
 * Required: a certificate without a purpose would be valid for any, even for a TLS server named in the common
 * name.
 */
function readPurposes(options: ParsedOptions): readonly CertificatePurpose[] {
  const chosen = new Set(options.all("purpose").map((word) => readWord("purpose", purposes, word)));
  if (chosen.size === 0) throw usageError(`--purpose is missing; use one or more of ${purposes.join(", ")}`);
  return purposes.filter((purpose) => chosen.has(purpose));
}

function readWord<Word extends string>(option: string, words: readonly Word[], text: string): Word {
  const word = words.find((candidate) => candidate === text);
  if (word === undefined) throw usageError(`--${option}: "${text}" is not one of ${words.join(", ")}`);
  return word;
}

function readName<T>(option: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CryptoError ? usageError(`--${option}: ${error.message}`) : error;
  }
}

/**
 * Runs `ca issue --csr`. The ML-DSA-65 CA signs for post-quantum keys, the ECDSA-P256 CA for all others.
 *
 * @throws ConfigError, CryptoError, CliError if the request is invalid, or the certificate would have no name
 */
export async function issueForRequest(
  dataDir: string,
  choice: RequestChoice & { readonly days: number; readonly files: VerbFiles },
  now: Date,
): Promise<number> {
  const { maxRequestFileBytes, readCertificateRequest } = await import("./read-certificate-request.ts");
  const tooLarge = `${choice.csr} is larger than ${maxRequestFileBytes} bytes, the limit for a request`;
  const file = await gather(readChunks(choice.csr), maxRequestFileBytes, tooLarge);
  const request = await withProvider((provider) => readCertificateRequest(provider, file));
  const subject = (choice.subject === "copy" ? request.subject : choice.subject) ?? [];
  const alternativeNames = (choice.names === "copy" ? request.alternativeNames : choice.names) ?? [];
  if (subject.length + alternativeNames.length === 0) throw nameless(choice.csr, request);
  const { issueCertificate, openAuthority } = await import("../../src/crypto/x509.ts");
  const algorithm = request.algorithm === "ECDSA-P256" ? "ECDSA-P256" : "ML-DSA-65";
  const suffix = authorities.find((authority) => authority.algorithm === algorithm)?.suffix ?? "";
  const authority = openAuthority(readAuthority(directoryIn(dataDir), suffix));
  const { publicKey } = request;
  const certificate = issueCertificate(authority, { ...choice, subject, alternativeNames, publicKey, now });
  const out = choice.files.write("out", certificate);
  const left = describeLeftOut(request, subject, alternativeNames);
  const text = facts({
    certificate: out,
    subject: formatDistinguishedName(subject),
    names: alternativeNames.map(formatAlternativeName).join(", "),
    purpose: choice.purposes.join(", "),
    key: request.algorithm,
    issuer: authority.certificate.subject.replaceAll("\n", ", "),
    "valid until": new X509Certificate(certificate).validToDate.toISOString(),
    "left out": left.join(", "),
  });
  (choice.files.areOnStandardOutput ? process.stderr : process.stdout).write(`${harmless(text)}\n`);
  return 0;
}

function nameless(csr: string, { subject, alternativeNames }: CertificateRequest): ConfigError {
  const wishes = [formatDistinguishedName(subject), ...alternativeNames.map(formatAlternativeName)];
  const asked = wishes.filter((wish) => wish !== "").join(", ") || "no name";
  return new ConfigError(
    `the certificate would have no name; ${csr} requests ${asked}; ` +
      "copy them with --copy subject and --copy names, or set others with --subject and --name",
  );
}

/** Lists what was requested but left out of the certificate. */
function describeLeftOut(
  request: CertificateRequest,
  subject: DistinguishedName,
  names: readonly AlternativeName[],
): readonly string[] {
  const wished = formatDistinguishedName(request.subject);
  const issued = new Set(names.map(formatAlternativeName));
  return [
    ...(wished === formatDistinguishedName(subject) ? [] : [wished].filter((name) => name !== "")),
    ...request.alternativeNames.map(formatAlternativeName).filter((name) => !issued.has(name)),
    ...request.otherWishes.map((oid) => `extension or attribute ${oid}`),
  ];
}
