/**
 * One HTTP exchange (a request and its answer) over HTTP/1.1 or HTTP/2. No other file reads from or writes to
 * the requests, responses and streams of node:http and node:http2.
 *
 * A peer can disconnect at any moment, even in the segment that carried its request. From then on nothing is
 * read, writes do nothing, and no method throws. `send` throws only for headers that HTTP does not allow: a
 * handler bug.
 */
import type http from "node:http";
import http2, { type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { CallHeaders } from "../calls/call-headers.ts";
import { Expiries, type Expiring, type Place } from "../calls/live-list.ts";
import { refuse } from "../errors.ts";
import { toNodeHeaders } from "./metadata.ts";
import { closeAfterRequest, drainRequestMs } from "./node-workarounds.ts";
import type { Writing } from "./unread-responses.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The whole body, or its pieces; without a body the headers end the answer. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Sent after a complete body. */
  readonly trailers?: Headers | undefined;
  /**
   * Recognizes the last piece of the body. A client may stop sending once it reads this, so it must end the
   * answer.
   */
  readonly isLast?: ((piece: Uint8Array) => boolean) | undefined;
}

/** Consumes a request body. Nothing follows `end` or `cut`. */
interface Receiver {
  take(chunk: Buffer): void;
  /** The body is complete. */
  end(): void;
  /** The peer disconnected before the body was complete. */
  cut(): void;
}

/** HTTP/2 error codes for resetting a stream (RFC 9113, section 7). */
type ResetCode = "INTERNAL_ERROR" | "ENHANCE_YOUR_CALM";

/**
 * Checks a piece on arrival; `pieces` holds everything received so far.
 *
 * @throws a refusal, which stops the read
 */
type CheckPiece = (piece: Buffer, size: number, pieces: readonly Buffer[]) => void;

/** Pieces that every body may have, whatever their size. */
const freePieces = 10_000;
/** Minimum average size of further pieces: each costs the event loop microseconds, however small it is. */
const minPieceBytes = 16;

/** Collects a whole body. */
class WholeBody implements Receiver {
  readonly whole = Promise.withResolvers<Buffer>();
  readonly #check: CheckPiece;
  #pieces: Buffer[] = [];
  #size = 0;
  #isRefused = false;

  constructor(check: CheckPiece) {
    this.#check = check;
  }

  take(piece: Buffer): void {
    if (this.#isRefused) return;
    this.#pieces.push(piece);
    this.#size += piece.length;
    try {
      if (this.#pieces.length > freePieces && this.#size < this.#pieces.length * minPieceBytes)
        throw tooManyPieces;
      this.#check(piece, this.#size, this.#pieces);
    } catch (error) {
      this.#isRefused = true;
      this.#pieces = [];
      this.whole.reject(error);
    }
  }

  end(): void {
    const [first] = this.#pieces;
    const isOne = this.#pieces.length === 1 && first !== undefined;
    this.whole.resolve(isOne ? first : Buffer.concat(this.#pieces, this.#size));
  }

  cut(): void {
    this.whole.reject(cutBody);
  }
}

/** Shared by all canceled calls: an error with a stack for each would be costly. */
export const canceled = refuse("CALL_CANCELED", "the caller left before its call had ended");
const tooManyPieces = refuse(
  "HTTP_INVALID",
  `the body arrives in more than ${freePieces} pieces of less than ${minPieceBytes} bytes on average; send larger chunks`,
);
const cutBody = refuse("CALL_CANCELED", "the caller disconnected before its request was complete");

/**
 * Size in bytes of the pieces in which a whole body is written. Their number shows a slow reader's progress.
 */
const pieceBytes = 64 * 1024;

/** Links a stream to its exchange until the stream closes; Node may keep the stream for longer. */
const exchangeKey = Symbol("exchange");
type Keyed = object & { [exchangeKey]?: Exchange | undefined };

function onData(this: Keyed, chunk: Buffer): void {
  this[exchangeKey]?.takeChunk(chunk);
}

function onEnd(this: Keyed): void {
  this[exchangeKey]?.endBody();
}

function onAborted(this: Keyed): void {
  this[exchangeKey]?.cutBody();
}

function onClose(this: Keyed): void {
  this[exchangeKey]?.close();
  this[exchangeKey] = undefined;
}

function onAnswered(this: Keyed): void {
  this[exchangeKey]?.drain();
}

function onWantTrailers(this: Keyed): void {
  this[exchangeKey]?.sendTrailers();
}

export abstract class Exchange implements Writing {
  /** The method, in upper case. */
  readonly method: string;
  /** The raw target: path and query, neither decoded nor normalized. */
  readonly target: string;
  /** Includes the HTTP/2 pseudo-headers. */
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, as sent. */
  readonly rawHeaders: readonly string[];
  /** The remote address of the connection. */
  readonly peer: string | undefined;
  /** The connection; undefined if it has closed. */
  readonly socket: Socket | undefined;
  abstract readonly httpVersion: "1.1" | "2.0";
  /** The target as an absolute URL. */
  abstract readonly url: string;
  /** Whether the request may have a body. HTTP/2 does not announce one: the request just continues. */
  abstract readonly hasBody: boolean;
  /** Names the client that unread answer bytes are counted for; undefined for a page. */
  client?: () => string;
  protected readonly source: Readable & Keyed;
  /** Headers added to every answer. */
  protected ownHeaders: Readonly<Record<string, string>> | undefined;
  #receiver: Receiver | undefined;
  #isListening = false;
  #isBodyComplete = false;
  #isDiscarded = false;
  #isClosed = false;
  #closers: (() => void)[] = [];
  #controller: AbortController | undefined;
  /** Wakes the writer that waits for its reader. */
  #onLeft: (() => void) | undefined;
  /** The answer whose trailers have yet to be sent. */
  #answer: Answer | undefined;
  #writtenBytes = 0;

  protected constructor(
    source: Readable,
    answer: Writable,
    head: Pick<Exchange, "method" | "target" | "headers" | "rawHeaders" | "peer" | "socket">,
  ) {
    this.source = source;
    this.method = head.method;
    this.target = head.target;
    this.headers = head.headers;
    this.rawHeaders = head.rawHeaders;
    this.peer = head.peer;
    this.socket = head.socket;
    this.source[exchangeKey] = this;
    (answer as Keyed)[exchangeKey] = this;
    answer.on("close", onClose);
  }

  /** Whether the answer has been sent or the peer has disconnected. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether an answer, or at least its head, has been written. */
  abstract readonly isAnswered: boolean;

  /** Whether the peer disconnected before the answer was written. */
  get hasLeft(): boolean {
    return this.#isClosed && !this.isWritten();
  }

  /** Aborts when the peer disconnects before the answer is written. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isClosed && this.#isUnread()) this.#controller.abort(canceled);
    }
    return this.#controller.signal;
  }

  /** Calls back once the exchange has closed, even if it already has. */
  onClose(closer: () => void): void {
    if (this.#isClosed) closer();
    else this.#closers.push(closer);
  }

  /** Sets headers for whichever answer is sent. The answer's own headers take precedence. */
  setOwnHeaders(headers: Readonly<Record<string, string>>): void {
    this.ownHeaders = headers;
  }

  /**
   * Sends "100 Continue" if the client expects it: only when the body is read, so never before an early
   * refusal.
   */
  protected continueIfExpected(): void {
    if (/^100-continue$/i.test(String(this.headers.expect ?? "")) && this.awaitsAnswer()) this.sendContinue();
  }

  /**
   * Reads the whole body.
   *
   * @param check runs for each piece, with all bytes received so far; throwing stops the read
   * @returns resolvers, so that the end of a call can reject them too; they reject with CALL_CANCELED for a
   *   truncated body
   */
  readAll(check: CheckPiece): PromiseWithResolvers<Buffer> {
    const body = new WholeBody(check);
    this.#receive(body);
    return body.whole;
  }

  /**
   * Reads the body piece by piece, with backpressure. Leaving the loop early does not end the exchange.
   *
   * @throws CALL_CANCELED for a truncated body
   */
  async *pieces(): AsyncGenerator<Uint8Array> {
    const arrived: Buffer[] = [];
    const body = { state: "open" as "open" | "complete" | "cut" };
    let wake: () => void = () => {};
    this.#receive({
      take: (piece) => {
        arrived.push(piece);
        this.source.pause();
        wake();
      },
      end: () => {
        body.state = "complete";
        wake();
      },
      cut: () => {
        body.state = "cut";
        wake();
      },
    });
    try {
      for (;;) {
        const piece = arrived.shift();
        if (piece !== undefined) {
          yield piece;
          continue;
        }
        if (body.state === "cut") throw cutBody;
        if (body.state === "complete") return;
        const next = new Promise<void>((resolve) => {
          wake = resolve;
        });
        this.source.resume();
        await next;
      }
    } finally {
      this.#receiver = undefined;
    }
  }

  /**
   * Sends the answer with backpressure. A second answer is ignored.
   *
   * @returns a promise only if the body is a sequence of pieces
   */
  send(answer: Answer): Promise<void> | undefined {
    if (!this.awaitsAnswer()) return undefined;
    const { body } = answer;
    this.#answer = answer;
    if (body === undefined || body instanceof Uint8Array) {
      this.sendWhole(answer, body ?? noBytes);
      return undefined;
    }
    return this.#sendPieces(answer, body);
  }

  async #sendPieces(answer: Answer, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    this.sendHead(answer);
    try {
      for await (const piece of pieces) {
        if (this.#isClosed) return;
        if (answer.isLast?.(piece)) return this.endBodyOfAnswer(piece);
        this.#writtenBytes += piece.length;
        if (!this.sink().write(piece)) await this.#drained();
      }
    } catch {
      // The bytes cannot show that they are truncated. A broken connection can.
      return this.drop();
    }
    this.endBodyOfAnswer(undefined);
  }

  #drained(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.sink().once("drain", resolve);
    this.#onLeft = resolve;
    return promise;
  }

  /** Writes a whole body and ends the answer. */
  protected endInPieces(body: Uint8Array): void {
    const sink = this.sink();
    let at = 0;
    for (; body.length - at > pieceBytes; at += pieceBytes) sink.write(body.subarray(at, at + pieceBytes));
    sink.end(at === 0 ? body : body.subarray(at));
  }

  /** Merges the headers of an answer with those for every answer. */
  protected mergeHeaders({ headers }: Answer): Headers {
    const own = this.ownHeaders;
    if (own === undefined) return headers;
    const merged = headers instanceof CallHeaders ? headers : new CallHeaders(toNodeHeaders(headers));
    for (const [name, value] of Object.entries(own)) {
      const given = merged.get(name);
      if (given === null) merged.set(name, value);
      else if (name === "vary") merged.set(name, `${value}, ${given}`);
    }
    return merged;
  }

  /** The trailers of the answer; read only after the body has ended. */
  protected takeTrailers(): Headers | undefined {
    const trailers = this.#answer?.trailers;
    this.#answer = undefined;
    return trailers;
  }

  #receive(receiver: Receiver): void {
    if (this.#isClosed || this.#isDiscarded) return receiver.cut();
    if (this.#isBodyComplete || !this.hasBody) return receiver.end();
    // Node ends an empty body that nobody reads.
    if (this.source.readableEnded) return this.isBodyCut() ? receiver.cut() : receiver.end();
    this.#receiver = receiver;
    this.continueIfExpected();
    if (this.#isListening) {
      // The previous reader left it paused.
      this.source.resume();
      return;
    }
    this.#isListening = true;
    this.source.on("aborted", onAborted);
    this.source.on("data", onData);
    this.source.on("end", onEnd);
  }

  /** Discards the rest of the request. A reader of the body gets nothing more. */
  discard(): void {
    this.#isDiscarded = true;
    this.cutBody();
    this.source.resume();
  }

  takeChunk(chunk: Buffer): void {
    this.#receiver?.take(chunk);
  }

  endBody(): void {
    if (this.isBodyCut()) return this.cutBody();
    this.#isBodyComplete = true;
    this.#receiver?.end();
    this.#receiver = undefined;
  }

  cutBody(): void {
    this.#receiver?.cut();
    this.#receiver = undefined;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.cutBody();
    this.#onLeft?.();
    if (this.#isUnread()) this.#controller?.abort(canceled);
    const closers = this.#closers;
    this.#closers = [];
    for (const closer of closers) closer();
  }

  /** The answer to HEAD is written before its handler, which may stream, has ended. */
  #isUnread(): boolean {
    return !this.isWritten() || this.method === "HEAD";
  }

  sendTrailers(): void {}

  /** Discards what an HTTP/2 peer still sends after its answer, for a limited time. */
  drain(): void {}

  arrivedBytes(): number {
    return this.source.readableLength;
  }

  writtenBytes(): number {
    return this.#writtenBytes;
  }

  abstract pendingBytes(): number;
  /**
   * Breaks an exchange whose answer cannot be written or whose reader has stalled.
   *
   * @param code the HTTP/2 error code
   */
  abstract drop(code?: ResetCode): void;
  /**
   * Hands the exchange to code that answers it through Node's own objects.
   *
   * @param setHeader receives the headers for every answer
   */
  abstract release(setHeader: (name: string, value: string) => void): void;
  protected abstract awaitsAnswer(): boolean;
  protected abstract isWritten(): boolean;
  protected abstract isBodyCut(): boolean;
  protected abstract sendContinue(): void;
  protected abstract sendWhole(answer: Answer, body: Uint8Array): void;
  protected abstract sendHead(answer: Answer): void;
  /** Ends a body of pieces, with the last piece if it was held back. */
  protected abstract endBodyOfAnswer(last: Uint8Array | undefined): void;
  protected abstract sink(): Writable;
}

const noBytes = new Uint8Array();

/** Maximum pieces of a body to discard after the answer. Node reads 64 KB at a time. */
const maxDrainedPieces = 1000;

export class Http1Exchange extends Exchange {
  readonly httpVersion = "1.1";
  readonly hasBody: boolean;
  readonly url: string;
  readonly #req: http.IncomingMessage;
  readonly #res: http.ServerResponse;

  constructor(req: http.IncomingMessage, res: http.ServerResponse) {
    const { method = "", url = "", headers, rawHeaders, socket } = req;
    super(req, res, { method, target: url, headers, rawHeaders, peer: socket.remoteAddress, socket });
    this.#req = req;
    this.#res = res;
    const scheme = "encrypted" in socket ? "https" : "http";
    this.url = url.startsWith("/") ? `${scheme}://${headers.host ?? ""}${url}` : url;
    // RFC 9112, section 6: a header announces content.
    this.hasBody = announcesBody(headers);
    if (this.hasBody) this.#drainOnceAnswered();
  }

  get isAnswered(): boolean {
    return this.#res.headersSent;
  }

  pendingBytes(): number {
    return this.#res.writableLength;
  }

  /**
   * An answer queued behind an endless one has no socket yet. Node may stop reading and miss the disconnect.
   */
  drop(): void {
    this.#req.socket.destroy();
  }

  release(setHeader: (name: string, value: string) => void): void {
    for (const [name, value] of Object.entries(this.ownHeaders ?? {})) setHeader(name, value);
    this.continueIfExpected();
  }

  protected awaitsAnswer(): boolean {
    return !this.#res.destroyed && !this.isAnswered;
  }

  protected isWritten(): boolean {
    return this.#res.writableEnded;
  }

  protected isBodyCut(): boolean {
    return !this.#req.complete;
  }

  protected sendContinue(): void {
    this.#res.writeContinue();
  }

  protected sendHead(answer: Answer): void {
    this.#res.writeHead(answer.status, toNodeHeaders(this.mergeHeaders(answer)));
    // A watcher must know that its watch is active before the first event.
    if (!(answer.body instanceof Uint8Array)) this.#res.flushHeaders();
  }

  protected sendWhole(answer: Answer, body: Uint8Array): void {
    const { headers, status } = answer;
    const hasLength = headers.has("content-length") || status === 204 || status === 304;
    if (!hasLength && answer.trailers === undefined) headers.set("content-length", String(body.length));
    this.sendHead({ ...answer, body });
    this.#addTrailers();
    this.endInPieces(body);
  }

  protected endBodyOfAnswer(last: Uint8Array | undefined): void {
    this.#addTrailers();
    this.#res.end(last);
  }

  protected sink(): Writable {
    return this.#res;
  }

  #addTrailers(): void {
    const trailers = this.takeTrailers();
    if (trailers !== undefined) this.#res.addTrailers(toNodeHeaders(trailers) as http.OutgoingHttpHeaders);
  }

  /**
   * Discards the rest of the request after its answer, because the next request follows it. Time and pieces
   * are limited: a client could go on forever, and each piece, even of one byte, costs the event loop
   * microseconds.
   */
  #drainOnceAnswered(): void {
    const req = this.#req;
    // Must run before Node's own listener, which closes the connection after its last answer.
    this.#res.prependOnceListener("finish", () => {
      if (req.complete || req.socket === null) return;
      closeAfterRequest(req);
      this.#drainForAWhile();
    });
  }

  #drainForAWhile(): void {
    const req = this.#req;
    this.discard();
    let pieces = 0;
    req.on("data", () => {
      pieces += 1;
      if (pieces === maxDrainedPieces) req.pause();
    });
    const timer = setTimeout(() => req.socket.destroy(), drainRequestMs).unref();
    for (const end of ["end", "close"]) req.once(end, () => clearTimeout(timer));
  }
}

/** Returns whether headers announce a non-empty body. HTTP/2 can have a body without such a header. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  const length = headers["content-length"];
  return (length !== undefined && length !== "0") || headers["transfer-encoding"] !== undefined;
}

/**
 * Headers with a new value in every answer. They would fill the HPACK table with useless entries, and nghttp2
 * compares all entries of one name, which takes 18 µs for a full table.
 */
const uniqueHeaders = { [http2.sensitiveHeaders]: ["x-request-id"] };
const endingHead = { endStream: true };
const headBeforeTrailers = { waitForTrailers: true };

/** Exchanges whose requests continue after their answers: one interval instead of a timer per refusal. */
const draining = new Expiries();

export class Http2Exchange extends Exchange implements Expiring {
  readonly httpVersion = "2.0";
  readonly #stream: ServerHttp2Stream;
  expiresAtMs = Number.POSITIVE_INFINITY;
  #drained: Place | undefined;

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    { peer, socket }: Pick<Exchange, "peer" | "socket">,
  ) {
    super(stream, stream, {
      peer,
      socket,
      method: headers[":method"] ?? "",
      target: headers[":path"] ?? "",
      headers,
      rawHeaders,
    });
    this.#stream = stream;
  }

  /** Finds the exchange of an open stream. */
  static of(stream: ServerHttp2Stream): Exchange | undefined {
    return (stream as Keyed)[exchangeKey];
  }

  get url(): string {
    const { ":scheme": scheme = "http", ":authority": authority, host = "" } = this.headers;
    return `${scheme}://${authority ?? host}${this.target}`;
  }

  get hasBody(): boolean {
    return !this.#stream.endAfterHeaders;
  }

  get isAnswered(): boolean {
    return this.#stream.headersSent;
  }

  pendingBytes(): number {
    return this.#stream.writableLength;
  }

  drop(code: ResetCode = "INTERNAL_ERROR"): void {
    this.#stream.close(http2.constants[`NGHTTP2_${code}`]);
    if (this.#stream.headersSent) this.#stream.destroy();
  }

  /** Node resets a stream that is answered before any code reads from it. */
  release(setHeader: (name: string, value: string) => void): void {
    for (const [name, value] of Object.entries(this.ownHeaders ?? {})) setHeader(name, value);
    if (!this.hasBody) return;
    this.continueIfExpected();
    this.#stream.read(0);
    // Node ends the answer to HEAD before the handler starts.
    if (this.method === "HEAD") this.#endAfterDrain();
    else this.#drainOnceAnswered();
  }

  override close(): void {
    this.#drained?.leave();
    super.close();
  }

  /** Stops draining a request that its client does not end. */
  expire(): void {
    if (this.#stream.headersSent) this.#stream.close(http2.constants.NGHTTP2_NO_ERROR);
    else this.expiresAtMs += drainRequestMs;
  }

  override sendTrailers(): void {
    if (!this.#isOpen()) return;
    const trailers = this.takeTrailers();
    try {
      this.#stream.sendTrailers(trailers === undefined ? {} : { ...toNodeHeaders(trailers) });
    } catch {
      this.drop();
    }
  }

  protected awaitsAnswer(): boolean {
    return this.#isOpen() && !this.isAnswered;
  }

  protected isWritten(): boolean {
    return !this.#stream.aborted && this.#stream.writableFinished;
  }

  /**
   * Only END_STREAM ends a body (RFC 9113, section 8.1), but Node ends a truncated body in the same way. Part
   * of a message would then be signed or stored as the whole. nghttp2 resets a stream with fewer bytes than it
   * announced.
   */
  protected isBodyCut(): boolean {
    // Node closes the stream before it ends the body. It does not emit "aborted" once the answer is written,
    // as for HEAD.
    return this.#stream.closed;
  }

  protected sendContinue(): void {
    this.#stream.additionalHeaders({ ":status": 100 });
  }

  protected sendHead(answer: Answer): void {
    this.#respond(answer, answer.trailers && headBeforeTrailers);
  }

  protected sendWhole(answer: Answer, body: Uint8Array): void {
    const isEmpty = body.length === 0 && answer.trailers === undefined;
    if (isEmpty || this.method === "HEAD") {
      this.#respond(answer, endingHead);
    } else {
      this.sendHead(answer);
      this.endInPieces(body);
    }
    this.#drainOnceAnswered();
  }

  protected endBodyOfAnswer(last: Uint8Array | undefined): void {
    this.#stream.end(last);
    this.#drainOnceAnswered();
  }

  protected sink(): Writable {
    return this.#stream;
  }

  #isOpen(): boolean {
    return !this.#stream.closed && !this.#stream.destroyed;
  }

  #respond(answer: Answer, options: http2.ServerStreamResponseOptions | undefined): void {
    const merged = this.mergeHeaders(answer);
    const headers =
      merged instanceof CallHeaders ? merged : new CallHeaders(toNodeHeaders(merged) as IncomingHttpHeaders);
    const list = headers.toList(":status", String(answer.status));
    this.#stream.respond(Object.assign(list, uniqueHeaders), options);
    if (options === headBeforeTrailers) this.#stream.on("wantTrailers", onWantTrailers);
  }

  /**
   * Drains the request once its answer is written. Draining an ended stream would create an error with a
   * stack that nobody sees. While the answer waits for its reader, the unread-response watch decides.
   */
  #drainOnceAnswered(): void {
    const stream = this.#stream;
    if (stream.readableEnded || !this.#isOpen()) return;
    if (stream.writableFinished) this.drain();
    else stream.on("finish", onAnswered);
  }

  /**
   * RFC 9113, section 8.1, permits an immediate reset, but some clients then discard the answer. A stream
   * with unread bytes never closes.
   */
  override drain(): void {
    this.discard();
    this.#endAfterDrain();
  }

  #endAfterDrain(): void {
    this.expiresAtMs = performance.now() + drainRequestMs;
    this.#drained = draining.add(this);
    if (this.isClosed) this.#drained.leave();
  }
}
