/**
 * One HTTP exchange, a request and its answer, over HTTP/1.1 or HTTP/2. No other file reads from or writes to the requests,
 * responses and streams of node:http and node:http2.
 *
 * A peer can leave at any moment, also in the segment that brought its request. After that, nothing is read, every write
 * does nothing, and no method throws. `send` throws only for headers that HTTP does not allow, which is a bug of a handler.
 */
import type http from "node:http";
import http2, { type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Readable, Writable } from "node:stream";
import { CallHeaders } from "../calls/call-headers.ts";
import { Expiries, type Expiring, type Place } from "../calls/live-list.ts";
import { refuse } from "../errors.ts";
import { toNodeHeaders } from "./metadata.ts";
import { closeAfterRequest, drainRequestMs } from "./node-workarounds.ts";
import type { Writing } from "./unread-responses.ts";

/** An answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The whole body, or its pieces; without bytes the headers end the answer. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Sent after the body, when it is complete. */
  readonly trailers?: Headers | undefined;
  /** Tells which piece of the body is the last. A client that reads it may stop sending, so it must end the answer. */
  readonly isLast?: ((piece: Uint8Array) => boolean) | undefined;
}

/** Takes the body of a request. After `end` or `cut` nothing follows. */
interface Receiver {
  take(chunk: Buffer): void;
  /** The body is complete. */
  end(): void;
  /** The peer left before the body was complete. */
  cut(): void;
}

/** Why a stream of HTTP/2 is reset (RFC 9113, section 7). */
type ResetCode = "INTERNAL_ERROR" | "ENHANCE_YOUR_CALM";

/** Checks a piece that has arrived, with all bytes until then. @throws a refusal, which ends the reading */
type CheckPiece = (piece: Buffer, size: number, pieces: readonly Buffer[]) => void;

/** Pieces that every body may have. */
const freePieces = 10_000;
/** Bytes that pieces beyond these must have on average: each costs the event loop microseconds, however small it is. */
const minPieceBytes = 16;

/** Collects a body. */
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

/** Shared by all calls whose callers leave, because an error with a stack for each of them is costly. */
export const canceled = refuse("CALL_CANCELED", "the caller left before its call had ended");
const tooManyPieces = refuse(
  "HTTP_INVALID",
  `the body arrives in more than ${freePieces} pieces of less than ${minPieceBytes} bytes on average; send larger chunks`,
);
const cutBody = refuse("CALL_CANCELED", "the caller disconnected before its request was complete");

/** Bytes of a piece of a whole body. The number of those that wait shows the progress of a slow reader. */
const pieceBytes = 64 * 1024;

/** A stream refers to its exchange under this key, and only until it closes: Node may keep the stream for longer. */
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

/** One exchange. */
export abstract class Exchange implements Writing {
  /** The method in upper case. */
  readonly method: string;
  /** The raw target: path and query, not decoded, not normalised. */
  readonly target: string;
  /** With the pseudo-headers of HTTP/2. */
  readonly headers: IncomingHttpHeaders;
  /** All names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  /** The address at the other end of the connection. */
  readonly peer: string | undefined;
  abstract readonly httpVersion: "1.1" | "2.0";
  /** The absolute URL of the target. */
  abstract readonly url: string;
  /** Whether the request may have a body. HTTP/2 does not announce one: the request just continues. */
  abstract readonly hasBody: boolean;
  /** The client that unread bytes of the answer count for; undefined for a page. */
  client?: () => string;
  protected readonly source: Readable & Keyed;
  /** Headers that every answer has. */
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
  /** The answer whose trailers are to be sent. */
  #answer: Answer | undefined;

  protected constructor(
    source: Readable,
    answer: Writable,
    head: Pick<Exchange, "method" | "target" | "headers" | "rawHeaders" | "peer">,
  ) {
    this.source = source;
    this.method = head.method;
    this.target = head.target;
    this.headers = head.headers;
    this.rawHeaders = head.rawHeaders;
    this.peer = head.peer;
    this.source[exchangeKey] = this;
    (answer as Keyed)[exchangeKey] = this;
    answer.on("close", onClose);
  }

  /** Whether the answer has been sent, or the peer has left. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether an answer, or its head, has been written. */
  abstract readonly isAnswered: boolean;

  /** Whether the peer has left before the answer was written. */
  get hasLeft(): boolean {
    return this.#isClosed && !this.isWritten();
  }

  /** Aborts when the peer leaves before the answer is written. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isClosed && this.#isUnread()) this.#controller.abort(canceled);
    }
    return this.#controller.signal;
  }

  /** Calls back when the exchange has closed: in its turn if it has already. */
  onClose(closer: () => void): void {
    if (this.#isClosed) closer();
    else this.#closers.push(closer);
  }

  /** Sets headers of the answer, whatever it is. Those of the answer itself take precedence. */
  setOwnHeaders(headers: Readonly<Record<string, string>>): void {
    this.ownHeaders = headers;
  }

  /** Tells a client that sent "Expect: 100-continue" to send its body: not before it is read, so not if it is refused first. */
  protected continueIfExpected(): void {
    if (/^100-continue$/i.test(String(this.headers.expect ?? "")) && this.awaitsAnswer()) this.sendContinue();
  }

  /**
   * Reads the whole body.
   *
   * @param check runs for each piece, with the bytes that have arrived; what it throws ends the reading
   * @returns resolvers, so that the end of a call can reject them too. They reject with CALL_CANCELED for a cut body
   */
  readAll(check: CheckPiece): PromiseWithResolvers<Buffer> {
    const body = new WholeBody(check);
    this.#receive(body);
    return body.whole;
  }

  /**
   * Reads the body piece by piece, no faster than the pieces are taken. To leave it early does not end the exchange.
   *
   * @throws CALL_CANCELED for a cut body
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
   * Sends the answer, no faster than its reader reads. A second answer is not sent.
   *
   * @returns a promise only for a body of pieces
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

  /** Writes a whole body, and ends the answer. */
  protected endInPieces(body: Uint8Array): void {
    const sink = this.sink();
    let at = 0;
    for (; body.length - at > pieceBytes; at += pieceBytes) sink.write(body.subarray(at, at + pieceBytes));
    sink.end(body.subarray(at));
  }

  /** The headers of an answer with those of every answer. */
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

  /** The trailers of the answer, read when its body has ended. */
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
      // The reader before left it paused.
      this.source.resume();
      return;
    }
    this.#isListening = true;
    this.source.on("aborted", onAborted);
    this.source.on("data", onData);
    this.source.on("end", onEnd);
  }

  /** Discards what the peer still sends. Who reads the body gets no more of it. */
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
    for (const closer of this.#closers.splice(0)) closer();
  }

  /** The answer to HEAD is written before its handler, which may stream, has ended. */
  #isUnread(): boolean {
    return !this.isWritten() || this.method === "HEAD";
  }

  sendTrailers(): void {}

  /** Discards what the peer of HTTP/2 still sends after its answer, for a while. */
  drain(): void {}

  arrivedBytes(): number {
    return this.source.readableLength;
  }

  abstract pendingBytes(): number;
  /** Ends an exchange whose answer cannot be written, and whose reader does not read. @param code of HTTP/2 */
  abstract drop(code?: ResetCode): void;
  /**
   * Passes the exchange on to code that answers it through Node's own objects.
   *
   * @param setHeader receives the headers that every answer has
   */
  abstract release(setHeader: (name: string, value: string) => void): void;
  protected abstract awaitsAnswer(): boolean;
  protected abstract isWritten(): boolean;
  protected abstract isBodyCut(): boolean;
  protected abstract sendContinue(): void;
  protected abstract sendWhole(answer: Answer, body: Uint8Array): void;
  protected abstract sendHead(answer: Answer): void;
  /** Ends a body of pieces, with the last one if it was held back. */
  protected abstract endBodyOfAnswer(last: Uint8Array | undefined): void;
  protected abstract sink(): Writable;
}

const noBytes = new Uint8Array();

/** Pieces of a body to discard once it is answered. Node reads 64 KB at a time. */
const maxDrainedPieces = 1000;

/** An exchange over HTTP/1.1. */
export class Http1Exchange extends Exchange {
  readonly httpVersion = "1.1";
  readonly hasBody: boolean;
  readonly url: string;
  readonly #req: http.IncomingMessage;
  readonly #res: http.ServerResponse;

  constructor(req: http.IncomingMessage, res: http.ServerResponse) {
    const { method = "", url = "", headers, rawHeaders } = req;
    super(req, res, { method, target: url, headers, rawHeaders, peer: req.socket.remoteAddress });
    this.#req = req;
    this.#res = res;
    const scheme = "encrypted" in req.socket ? "https" : "http";
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

  /** An answer behind an endless one has no socket yet. Node may read no more, and not notice that the client leaves. */
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
    // A watcher must learn that it watches before the first event.
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
   * Discards the rest of the request once it is answered: the next request follows it. Time and pieces are limited, because
   * a client could go on for ever, and each piece, of one byte or more, costs the event loop microseconds.
   */
  #drainOnceAnswered(): void {
    const req = this.#req;
    // Before Node's own listener, which closes the connection of a last answer.
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

/** Tells whether headers announce a body that is not empty. HTTP/2 can have a body without such a header. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  const length = headers["content-length"];
  return (length !== undefined && length !== "0") || headers["transfer-encoding"] !== undefined;
}

/**
 * Headers whose values differ in every answer. They would fill the table of HPACK with entries that are never used, and
 * nghttp2 compares all entries of one name, which takes 18 µs for a full table.
 */
const uniqueHeaders = { [http2.sensitiveHeaders]: ["x-request-id"] };
const endingHead = { endStream: true };
const headBeforeTrailers = { waitForTrailers: true };

/** The exchanges whose requests go on after their answers: one interval instead of a timer for each refusal. */
const draining = new Expiries();

/** An exchange over HTTP/2. */
export class Http2Exchange extends Exchange implements Expiring {
  readonly httpVersion = "2.0";
  readonly #stream: ServerHttp2Stream;
  #received = 0;
  expiresAtMs = Number.POSITIVE_INFINITY;
  #drained: Place | undefined;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]) {
    super(stream, stream, {
      method: headers[":method"] ?? "",
      target: headers[":path"] ?? "",
      headers,
      rawHeaders,
      peer: stream.session?.socket?.remoteAddress,
    });
    this.#stream = stream;
  }

  /** Finds the exchange of a stream that is open. */
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
    // Node ends the answer to HEAD before it begins.
    if (this.method === "HEAD") this.#endAfterDrain();
    else this.#drainOnceAnswered();
  }

  override takeChunk(chunk: Buffer): void {
    this.#received += chunk.length;
    super.takeChunk(chunk);
  }

  override close(): void {
    this.#drained?.leave();
    super.close();
  }

  /** Ends the drain of a request that its client does not end. */
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
   * Only END_STREAM ends a body, and a content-length must be true (RFC 9113, sections 8.1 and 8.1.1), but Node ends a body
   * that was cut in the same way. A part of a message would then be signed or stored as the whole.
   */
  protected isBodyCut(): boolean {
    const announced = this.headers["content-length"];
    // Node closes the stream before it ends the body. It does not call it aborted if the answer is written, as to HEAD.
    return this.#stream.closed || (announced !== undefined && this.#received !== Number(announced));
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
   * Drains the request when its answer is written. A stream that has ended before makes an error with a stack for it, which
   * nobody sees. While the answer waits for its reader, the watch of unread responses decides.
   */
  #drainOnceAnswered(): void {
    const stream = this.#stream;
    if (stream.readableEnded || !this.#isOpen()) return;
    if (stream.writableFinished) this.drain();
    else stream.on("finish", onAnswered);
  }

  /**
   * RFC 9113, section 8.1, permits an immediate reset, but some clients then discard the answer. A stream with unread bytes
   * never closes.
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
