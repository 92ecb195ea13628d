/** Makes a call with the reader's values, and reads the answer up to a limit. */
import { toBase64 } from "../../../src/client/base64.ts";
import type { HttpRequest } from "../snippets/input.ts";

/** A call's answer, possibly only its start. */
export interface Sent {
  readonly status: number;
  readonly statusText: string;
  readonly durationMs: number;
  readonly byteCount: number;
  /** JSON with line breaks, text, or bytes in base64. */
  readonly text: string;
  /** Whether more may follow, or was cut off. */
  readonly state: "open" | "whole" | "cut";
}

/** Longer answers are cut off here. */
const maxShownBytes = 256 * 1024;

/**
 * Sends a request.
 *
 * @param onPart receives the answer so far, after each part
 * @throws whatever fetch throws: a TypeError without a connection, an AbortError after the signal
 */
export async function send(
  { verb, url, headers, body: json, file }: HttpRequest,
  token: string | undefined,
  signal: AbortSignal,
  onPart: (sent: Sent) => void,
): Promise<void> {
  const startedAt = performance.now();
  const body = file ?? json;
  const response = await fetch(url, {
    method: verb,
    signal,
    cache: "no-store",
    headers: {
      ...headers,
      ...(json !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body }),
  });
  const { status, statusText } = response;
  const type = response.headers.get("content-type") ?? "";
  let answer = new Blob();
  const show = async (state: Sent["state"]): Promise<void> => {
    const durationMs = performance.now() - startedAt;
    const text = await readText(answer, type);
    onPart({ status, statusText, durationMs, byteCount: answer.size, text, state });
  };
  const reader = response.body?.getReader();
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    answer = new Blob([answer, next.value]);
    if (answer.size > maxShownBytes) {
      await reader?.cancel();
      return show("cut");
    }
    if (type.includes("ndjson")) await show("open");
  }
  await show("whole");
}

async function readText(answer: Blob, type: string): Promise<string> {
  if (!/json|text|yaml/.test(type)) return toBase64(new Uint8Array(await answer.arrayBuffer()));
  const text = await answer.text();
  if (!/^application\/json/.test(type)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
