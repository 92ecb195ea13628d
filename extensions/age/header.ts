/** The header of an age file: its stanzas, and their HMAC under the file key (C2SP age, "Header"). */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { type CliError, distrustError, usageError } from "../../src/cli/exit-codes.ts";
import { wipe } from "../../src/crypto/bytes.ts";
import { type ByteReader, FormatError } from "./byte-reader.ts";
import { decodeBase64, encodeBase64, readStanza, type Stanza, writeStanza } from "./stanza.ts";

export interface Header {
  readonly stanzas: readonly Stanza[];
  /** What the HMAC covers. */
  readonly covered: string;
  /** 32 bytes. */
  readonly mac: Uint8Array;
}

const version = "age-encryption.org/v1";
/** Limits of a header, as in age 1.3.2. */
const maxHeaderBytes = 2 * 1024 * 1024;
export const maxStanzas = 1024;

/**
 * Reads the header. The reader is then at the start of the payload.
 *
 * @throws CliError
 */
export async function readHeader(reader: ByteReader): Promise<Header> {
  const lines: string[] = [];
  let leftBytes = maxHeaderBytes;
  const readLine = async (): Promise<string> => {
    const line = await reader.readLine(leftBytes);
    if (line === undefined) throw new FormatError("the file ends in it");
    leftBytes -= line.length;
    lines.push(line);
    return line;
  };
  const start = Buffer.from(await reader.peek(version.length + 1)).toString("latin1");
  if (start !== `${version}\n`) throw notAge(start);
  try {
    await readLine();
    const stanzas: Stanza[] = [];
    for (;;) {
      const line = await readLine();
      if (line.startsWith("---")) return finish(stanzas, lines);
      if (stanzas.length === maxStanzas) throw new FormatError(`it has more than ${maxStanzas} stanzas`);
      stanzas.push(await readStanza(line, readLine));
    }
  } catch (error) {
    throw error instanceof FormatError ? usageError(`the header is malformed: ${error.message}`) : error;
  }
}

function notAge(start: string): CliError {
  const [other] = /^age-encryption\.org\/v(?!1\b)\d+/.exec(start) ?? [];
  return usageError(
    other === undefined
      ? `the input is not an age file: it does not begin with ${version}, and is not armored`
      : `the file has version "${other}" of the age format; this program reads ${version}`,
  );
}

function finish(stanzas: readonly Stanza[], lines: readonly string[]): Header {
  if (stanzas.length === 0) throw new FormatError("it has no stanza");
  const [, encoded = ""] = /^--- (.{43})$/.exec(lines.at(-1) ?? "") ?? [];
  const mac = decodeBase64(encoded);
  if (mac?.length !== 32)
    throw new FormatError('its last line is not "--- " and an HMAC of 32 bytes in base64');
  return { stanzas, covered: [...lines.slice(0, -1), "---"].join("\n"), mac };
}

export function writeHeader(stanzas: readonly Stanza[], fileKey: Uint8Array): string {
  const covered = `${version}\n${stanzas.map(writeStanza).join("")}---`;
  return `${covered} ${encodeBase64(computeMac(covered, fileKey))}\n`;
}

/** @throws CliError if the header was changed */
export function checkMac({ covered, mac }: Header, fileKey: Uint8Array): void {
  if (!timingSafeEqual(computeMac(covered, fileKey), mac))
    throw distrustError("the header was changed: its HMAC does not match");
}

function computeMac(covered: string, fileKey: Uint8Array): Uint8Array {
  const key = new Uint8Array(hkdfSync("sha256", fileKey, "", "header", 32));
  try {
    return createHmac("sha256", key).update(covered, "latin1").digest();
  } finally {
    wipe(key);
  }
}
