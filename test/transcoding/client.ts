/** Calls a transcoder like an HTTP server, and reads its answers. */
import type { RestRequest, RestResponse } from "../../src/transcoding/http.ts";
import type { RestServer } from "./rest-server.ts";

/** What a request contains besides method and target; a string body is sent as UTF-8 in one chunk. */
export interface RequestParts {
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal;
}

/** A complete answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** How a call was refused, as programs see it. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly reason: string;
  /** The invalid fields, as listed in google.rpc.BadRequest. */
  readonly fields: readonly string[];
}

/** Creates a request from its first line, `GET /v1/things?pageSize=3`. */
export function requestOf(line: string, { headers, body, signal }: RequestParts = {}): RestRequest {
  const space = line.indexOf(" ");
  return {
    method: line.slice(0, space),
    target: line.slice(space + 1),
    headers: new Headers(headers),
    body: body === undefined ? undefined : chunksOf(body),
    signal: signal ?? new AbortController().signal,
  };
}

function chunksOf(body: NonNullable<RequestParts["body"]>): AsyncIterable<Uint8Array> {
  return typeof body === "string" || body instanceof Uint8Array ? chunked(body) : body;
}

/** Sends a body in pieces. */
export async function* chunked(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

/** Sends some pieces and then nothing more, without an end. */
export async function* stalled(...pieces: string[]): AsyncGenerator<Uint8Array> {
  yield* chunked(...pieces);
  await new Promise(() => {});
}

/** Makes a call and reads the whole answer. */
export async function send(
  transcoder: Pick<RestServer, "handle">,
  line: string,
  parts?: RequestParts,
): Promise<Answer> {
  return readAnswer(await transcoder.handle(requestOf(line, parts)));
}

/** Reads an answer to its end. */
export async function readAnswer({ status, headers, body }: RestResponse): Promise<Answer> {
  if (body instanceof Uint8Array) return { status, headers, text: Buffer.from(body).toString() };
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return { status, headers, text: Buffer.concat(pieces).toString() };
}

/** Reads an answer piece by piece. */
export function piecesOf({ body }: RestResponse): AsyncIterator<Uint8Array> {
  if (body instanceof Uint8Array) throw new Error(`the answer came whole: ${Buffer.from(body)}`);
  return body[Symbol.asyncIterator]();
}

/** Parses the JSON of an answer that must be an object. */
export function jsonOf(answer: Answer): Record<string, unknown> {
  return JSON.parse(answer.text);
}

/** The REST error body. */
interface ErrorBody {
  readonly status: string;
  readonly code: string;
  readonly message: string;
  readonly details: readonly {
    readonly "@type": string;
    readonly reason?: string;
    readonly fieldViolations?: readonly { readonly field?: string }[];
  }[];
}

/** Parses an answer that must be an error. */
export function refusalOf(answer: Answer): Refusal {
  return { status: answer.status, ...errorOf(answer.text) };
}

/** Parses the JSON of an error, in our own form or in Google's. */
export function errorOf(text: string): Omit<Refusal, "status"> {
  const { error, ...own } = JSON.parse(text);
  const { code, details }: ErrorBody = error === undefined ? own : { ...error, code: error.status };
  const detail = (name: string) =>
    details.find((one) => one["@type"] === `type.googleapis.com/google.rpc.${name}`);
  return {
    code,
    reason: detail("ErrorInfo")?.reason ?? "",
    fields: detail("BadRequest")?.fieldViolations?.map(({ field }) => field ?? "") ?? [],
  };
}
