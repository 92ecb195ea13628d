/** Stanzas, the lines of which age's file header and its plugin protocol consist (C2SP age, "Recipient stanza"). */
import { FormatError } from "./byte-reader.ts";

export interface Stanza {
  readonly type: string;
  readonly args: readonly string[];
  readonly body: Uint8Array;
}

/** A body line with fewer characters is the last one. */
const columns = 64;
/** Maximum arguments of a stanza, as in age 1.3.2. */
const maxArgs = 128;

export function writeStanza({ type, args, body }: Stanza): string {
  const lines = encodeBase64(body).match(/.{1,64}/g) ?? [];
  // The last line is short, even if it is empty.
  const end = lines.at(-1)?.length === columns || lines.length === 0 ? [""] : [];
  return [["->", type, ...args].join(" "), ...lines, ...end, ""].join("\n");
}

/**
 * Parses a stanza.
 *
 * @param opening its first line
 * @param readLine reads the next line
 * @throws FormatError
 */
export async function readStanza(opening: string, readLine: () => Promise<string>): Promise<Stanza> {
  const [arrow, type, ...args] = opening.split(" ");
  if (arrow !== "->" || type === undefined)
    throw new FormatError('a stanza does not begin with "-> " and a type');
  if (args.length > maxArgs) throw new FormatError(`a stanza has more than ${maxArgs} arguments`);
  if (![type, ...args].every((word) => /^[\x21-\x7e]+$/.test(word)))
    throw new FormatError(
      "a stanza has an empty argument, or one with other than printable ASCII characters",
    );
  let encoded = "";
  for (;;) {
    const line = await readLine();
    if (line.length > columns) throw new FormatError("a stanza has a body line of more than 64 characters");
    encoded += line;
    if (line.length < columns) break;
  }
  const body = decodeBase64(encoded);
  if (body === undefined) throw new FormatError("a stanza's body is not canonical base64 without padding");
  return { type, args, body };
}

/** Base64 without padding (RFC 4648, section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  return bytes.toBase64({ omitPadding: true });
}

/** @returns undefined for anything but canonical base64 without padding */
export function decodeBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]*$/.test(text)) return undefined;
  try {
    return Uint8Array.fromBase64(text.padEnd(Math.ceil(text.length / 4) * 4, "="), {
      lastChunkHandling: "strict",
    });
  } catch {
    return undefined;
  }
}
