/** Cleans answers for a document: no secrets, no tokens, and only the start of long bytes. */
import type { Json } from "../../src/calls/example.ts";

/**
 * Maximum length of a base64 run that stays whole, such as an Ed25519 signature, a hash or an ML-KEM secret.
 */
const maxRunLength = 128;
/** Length that a shortened run keeps: 48 bytes. */
const keptLength = 64;

/** Names of fields with secrets. A test lists all other fields with bytes, which are public. */
export const secretNames =
  /(private|secret|decapsulation|session)_?key|seed$|secret$|password$|(?<!page_?)token$|^keyLog$/i;

export function cleanAnswer(body: unknown, name = ""): Json {
  if (Array.isArray(body)) return body.map((part) => cleanAnswer(part, name));
  if (typeof body === "object" && body !== null)
    return Object.fromEntries(Object.entries(body).map(([key, value]) => [key, cleanAnswer(value, key)]));
  if (typeof body !== "string") return body as Json;
  if (body !== "" && secretNames.test(name)) return hideSecret(body);
  return shortenRuns(body.replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, tokenSample));
}

/** Replaces a token in a document. */
export const tokenSample = "HEADER.CLAIMS.SIGNATURE";

function hideSecret(text: string): string {
  if (/^eyJ/.test(text)) return tokenSample;
  const byteCount = Buffer.from(text, "base64").length;
  return isBase64(text) ? mark(`SECRET/OF/${byteCount}/BYTES`) : "(secret)";
}

/** Shortens runs of base64 and base64url in a text, and the bodies of PEM. */
export function shortenRuns(text: string): string {
  return text
    .replace(/(-----BEGIN [A-Z ]+-----\r?\n)([\w+/=\r\n]+)(-----END)/g, (_all, begin, body, end) => {
      const run = shortenRun(body.replaceAll(/\s/g, ""));
      return `${begin}${run.replace(/.{1,64}/g, "$&\n")}${end}`;
    })
    .replace(/[\w+/-]{129,}={0,2}/g, shortenRun);
}

function shortenRun(run: string): string {
  if (run.length <= maxRunLength || /^[0-9a-f]+$/.test(run)) return run;
  const isUrlSafe = /[-_]/.test(run);
  const marker = mark(`SHORTENED/FROM/${Buffer.from(run, "base64").length}/BYTES`);
  return run.slice(0, keptLength) + (isUrlSafe ? marker.replaceAll("/", "_") : marker);
}

/** Pads a marker to whole groups of four characters, so that it is valid base64 itself. */
function mark(text: string): string {
  const marker = `//${text}//`;
  return marker.padEnd(Math.ceil(marker.length / 4) * 4, "/");
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}
