/** Makes a call as the reader filled it in, and reads the answer up to a limit. */
import type { HttpRequest } from "../snippets/input.ts";

/** The answer of a call, possibly only its start. */
export interface Sent {
  readonly status: number;
  readonly statusText: string;
  readonly durationMs: number;
  readonly byteCount: number;
  /** JSON with lines, a text, or bytes as base64. */
  readonly text: string;
  /** Whether more may come, or was left out. */
  readonly state: "open" | "whole" | "cut";
}

/** Of longer answers, the start is shown. */
const maxShownBytes = 256 * 1024;

/**
 * Sends a request.
 *
 * @param onPart takes what came so far, for each part of the answer
 * @throws what fetch throws: a TypeError without a connection, an AbortError after the signal
 */
export async function send(
  { verb, url, headers, body }: HttpRequest,
  token: string | undefined,
  signal: AbortSignal,
  onPart: (sent: Sent) => void,
): Promise<void> {
  const startedAt = performance.now();
  const response = await fetch(url, {
    method: verb,
    signal,
    cache: "no-store",
    headers: {
      ...headers,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body }),
  });
  const type = response.headers.get("content-type") ?? "";
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let byteCount = 0;
  const show = (state: Sent["state"]): void =>
    onPart({
      status: response.status,
      statusText: response.statusText,
      durationMs: performance.now() - startedAt,
      byteCount,
      text: readText(parts, type),
      state,
    });
  const reader = response.body?.getReader();
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    parts.push(next.value);
    byteCount += next.value.length;
    if (byteCount > maxShownBytes) {
      await reader?.cancel();
      return show("cut");
    }
    if (type.includes("ndjson")) show("open");
  }
  show("whole");
}

function readText(parts: readonly Uint8Array<ArrayBuffer>[], type: string): string {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  if (!/json|text|yaml/.test(type)) return toBase64(bytes);
  const text = new TextDecoder().decode(bytes);
  if (!/^application\/json/.test(type)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
