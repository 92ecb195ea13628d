/** Calls a server over gRPC with the caller's token. */
import type {
  DescMessage,
  DescMethodStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { isLoopback } from "../../client/loopback.ts";
import { OutgoingConnection } from "../../http/outgoing-connection.ts";
import type { ParsedOptions } from "../command-line/options.ts";
import { CliError, exitCodes, usageError } from "../exit-codes.ts";
import { readText } from "../files/read.ts";
import { findToken } from "./logins.ts";
import { readTrustedCa } from "./trusted-ca.ts";

const defaultUrl = "http://127.0.0.1:8080";
const defaultTimeoutMs = 30_000;
/** Our own servers limit their pages; this bounds what any other server may send. */
const maxReadBytes = 64 * 1024 * 1024;

// Closes connections. Preallocated: Node reads the stack of the error, and mapping one to the sources takes as long
// as a small call.
const closed = Object.assign(new Error("the client has closed its connections"), {
  name: "AbortError",
  stack: "",
});

/** Per-call limits that override the command line. */
export interface CallLimits {
  /** Replaces --timeout for this call. */
  readonly timeoutMs?: number;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
}

/** A client for one server. */
export interface ApiClient {
  /** Scheme, host and port. */
  readonly url: string;
  /** CA certificates (PEM) that it trusts in addition to the Node.js defaults. */
  readonly caPem?: string;
  /** Where the CA comes from, for error messages. */
  readonly caSource?: string;
  /** Makes a unary call. */
  ask<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    limits?: CallLimits,
  ): Promise<MessageShape<O>>;
  /** Makes a streaming call; sends each message as soon as `requests` yields it. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    requests: AsyncIterable<MessageInitShape<I>>,
  ): AsyncGenerator<MessageShape<O>>;
  /** Returns a client for the same server with a different token, or without one. */
  withToken(token: string | undefined): ApiClient;
  /**
   * Refuses to send a secret unencrypted to another machine.
   *
   * @throws CliError
   */
  requirePrivacy(): void;
  close(): void;
}

/**
 * Reads the server URL from the command line or QSP_URL.
 *
 * @throws CliError
 */
function readUrl(options: ParsedOptions): string {
  const text = options.text("url") ?? (process.env.QSP_URL || defaultUrl);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The text may contain the password.
  if (url !== undefined && `${url.username}${url.password}` !== "")
    throw usageError("--url must have no user name and no password; log in with qsp login USERNAME");
  const isPlain = url?.pathname === "/" && url.search === "" && url.hash === "";
  if (url === undefined || !isPlain || !["http:", "https:"].includes(url.protocol))
    throw usageError(`--url "${text}" ${findFault(text, url)}`);
  return url.origin;
}

function findFault(text: string, url: URL | undefined): string {
  if (url !== undefined && /^https?:$/.test(url.protocol)) return `must have no path: use ${url.origin}`;
  // "localhost:8080" parses as a URL with the scheme "localhost".
  if (/^[\w.-]+(:\d+)?$/.test(text)) return `lacks http:// or https://: use http://${text}`;
  return `is not a URL such as ${defaultUrl}`;
}

/**
 * Creates a client from the command line, without connecting yet.
 *
 * @param isLongLived detects within seconds that the server has vanished, and reconnects; otherwise, TCP timeouts apply
 */
export function createClient(options: ParsedOptions, isLongLived = false): ApiClient {
  const url = readUrl(options);
  const seconds = options.whole("timeout", 1, 86_400);
  const timeoutMs = seconds === undefined ? undefined : seconds * 1000;
  const ca = readTrustedCa(options, url);
  const connection = new OutgoingConnection(url, { caPem: ca?.pem, isLongLived });
  const requirePrivacy = (): void => {
    if (options.flag("cleartext") || url.startsWith("https:") || isLoopback(new URL(url).hostname)) return;
    throw usageError(
      `${url} would send a secret unencrypted; use https, or --cleartext if you control the network`,
    );
  };
  const make = (token: () => string | undefined): ApiClient => {
    const authorize: Interceptor = (next) => (request) => {
      const secret = token();
      if (secret !== undefined) {
        requirePrivacy();
        request.header.set("authorization", `Bearer ${secret}`);
      }
      return next(request);
    };
    const transport = createGrpcTransport({
      baseUrl: url,
      sessionManager: connection,
      interceptors: [authorize],
      readMaxBytes: maxReadBytes,
    });
    return {
      url,
      ...(ca && { caPem: ca.pem, caSource: ca.source }),
      ask: async (method, request, limits = {}) => {
        const answer = await transport.unary(
          method,
          limits.signal,
          limits.timeoutMs ?? timeoutMs ?? defaultTimeoutMs,
          undefined,
          request,
        );
        return answer.message;
      },
      stream: (method, requests) =>
        streamOver(transport, () => connection.abort(), method, requests, timeoutMs),
      withToken: (other) => make(() => other),
      requirePrivacy,
      close: () => connection.abort(closed),
    };
  };
  let read: { readonly token: string | undefined } | undefined;
  return make(() => {
    read ??= { token: readToken(options, url) };
    return read.token;
  });
}

/** @param disconnect closes the connection immediately */
async function* streamOver<I extends DescMessage, O extends DescMessage>(
  transport: Transport,
  disconnect: () => void,
  method: DescMethodStreaming<I, O>,
  requests: AsyncIterable<MessageInitShape<I>>,
  timeoutMs: number | undefined,
): AsyncGenerator<MessageShape<O>> {
  let ownFault: { readonly error: unknown } | undefined;
  async function* guarded(): AsyncGenerator<MessageInitShape<I>> {
    try {
      yield* requests;
    } catch (error) {
      ownFault = { error };
      // When Connect closes the stream, Node may send a regular end of stream before the reset. The server would then
      // take a truncated upload for the whole content and sign it.
      disconnect();
      throw error;
    }
  }
  try {
    const answers = await transport.stream(method, undefined, timeoutMs, undefined, guarded());
    yield* answers.message;
  } catch (error) {
    // Connect reports local errors, such as an unreadable file, as a failed call.
    throw ownFault === undefined ? error : ownFault.error;
  }
}

/** Reads the only answer of a stream. */
export async function theAnswer<T>(answers: AsyncIterable<T>): Promise<T> {
  let found: T | undefined;
  // Read to the end: an error may follow the message.
  for await (const answer of answers) found ??= answer;
  if (found === undefined) throw new Error("the stream ended without an answer");
  return found;
}

/** Creates a request stream with one message. */
export async function* oneOf<T>(request: T): AsyncGenerator<T> {
  yield request;
}

/** Bytes of content per message, below the 4 MiB that servers accept. A caller's chunk may be a whole document. */
const uploadBytes = 1024 * 1024;

/** Creates the request stream of an upload: the header, then the content in chunks. */
export async function* toUpload<Header>(header: Header, chunks: AsyncIterable<Uint8Array>) {
  yield { part: { case: "header" as const, value: header } };
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length; at += uploadBytes)
      yield {
        part: { case: "chunk" as const, value: Uint8Array.from(chunk.subarray(at, at + uploadBytes)) },
      };
}

/** Fetches all pages of a list. */
export async function askPages<Page extends { readonly nextPageToken: string }>(
  ask: (pageToken: string) => Promise<Page>,
): Promise<[Page, ...Page[]]> {
  let last = await ask("");
  const pages: [Page, ...Page[]] = [last];
  const asked = new Set<string>();
  while (last.nextPageToken !== "") {
    if (asked.has(last.nextPageToken))
      throw new CliError(exitCodes.unreachable, "the server keeps returning the same page of the list");
    asked.add(last.nextPageToken);
    last = await ask(last.nextPageToken);
    pages.push(last);
  }
  return pages;
}

/**
 * Reads the token from --token-file, QSP_TOKEN, or a stored login to this server.
 *
 * @throws CliError
 */
export function readToken(options: ParsedOptions, url: string): string | undefined {
  const file = options.text("token-file");
  const given = file === undefined ? process.env.QSP_TOKEN : readText(file);
  if (file === undefined && !given) return findToken(url);
  const token = given?.trim() ?? "";
  // The error for an invalid header would quote the token.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw usageError(`${file ?? "QSP_TOKEN"} does not contain a token on one line`);
  return token;
}
