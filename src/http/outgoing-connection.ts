/**
 * Outgoing HTTP/2 connections: between the servers of a chain, and from the client to its server.
 *
 * The peer is untrusted. Node emits a session's error after the session was destroyed, once the socket has
 * closed, and an error without a listener ends the process. connect-node's session manager removes its
 * listeners earlier. Here, the socket, the session and each stream keep a listener for their whole lives.
 */
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { Code, ConnectError } from "@connectrpc/connect";
import type { GrpcTransportOptions } from "@connectrpc/connect-node";

export interface OutgoingOptions {
  /** Trusted certificates (PEM), in addition to Node's. */
  readonly caPem?: string | undefined;
  /**
   * Detects within seconds that the server has disappeared: pings during calls, and before a call after 5
   * seconds of silence. Otherwise TCP decides.
   */
  readonly isLongLived?: boolean | undefined;
}

type SessionManager = NonNullable<GrpcTransportOptions["sessionManager"]>;

/** Milliseconds of silence after which a long-lived connection is pinged. */
const silenceMs = 5000;
/** Milliseconds to wait for the answer to a ping. */
const pongMs = 2000;
/** Maximum attempts to begin a request. A server may close its connection just then, but not every time. */
const maxAttempts = 2;

/** A connection that is opened on the first request, and reopened on the next one after it has closed. */
export class OutgoingConnection implements SessionManager {
  /** Scheme, host and port. */
  readonly authority: string;
  readonly #options: OutgoingOptions;
  /** All open connections. After GOAWAY, a server still finishes the calls on the old one. */
  readonly #open = new Set<Link>();
  #newest: Link | undefined;

  constructor(url: string, options: OutgoingOptions = {}) {
    this.authority = new URL(url).origin;
    this.#options = options;
  }

  /** Begins a request. Called by connect-node. */
  async request(
    method: string,
    path: string,
    headers: http2.OutgoingHttpHeaders,
    options: Omit<http2.ClientSessionRequestOptions, "signal">,
  ): Promise<http2.ClientHttp2Stream> {
    for (let attempt = 1; ; attempt += 1) {
      const link = await this.#find();
      try {
        return link.request({ ...headers, ":method": method, ":path": path }, options);
      } catch (error) {
        if (!link.isOver || attempt === maxAttempts) throw error;
      }
    }
  }

  /** Records that the server is alive. Called by connect-node. */
  notifyResponseByteRead(stream: http2.ClientHttp2Stream): void {
    for (const link of this.#open) if (link.session === stream.session) link.hear();
  }

  /** Ends all calls and closes all connections at once. */
  abort(reason: Error = new ConnectError("the connection was closed", Code.Canceled)): void {
    for (const link of this.#open) link.destroy(reason);
  }

  async #find(): Promise<Link> {
    const held = this.#newest;
    if (held !== undefined && !held.isOver) await held.check();
    // Another call may have replaced it meanwhile.
    if (this.#newest === undefined || this.#newest.isOver) {
      const link = new Link(this.authority, this.#options);
      this.#newest = link;
      this.#open.add(link);
      link.session.once("close", () => this.#open.delete(link));
    }
    const link = this.#newest;
    await link.opened;
    return link;
  }
}

/** One connection. */
class Link {
  readonly session: http2.ClientHttp2Session;
  /** Resolves when the connection can be used; rejects with the reason if it cannot. */
  readonly opened: Promise<void>;
  readonly #socket: net.Socket;
  readonly #isLongLived: boolean;
  #streams = 0;
  #heardMs = performance.now();

  constructor(authority: string, { caPem, isLongLived = false }: OutgoingOptions) {
    const socket = openSocket(new URL(authority), caPem);
    const session = http2.connect(authority, {
      createConnection: () => socket,
      settings: { enablePush: false },
    });
    socket.on("error", ignore);
    session.on("error", ignore);
    this.#socket = socket;
    this.session = session;
    this.#isLongLived = isLongLived;
    this.opened = new Promise((resolve, reject) => {
      session.once("connect", () => resolve());
      session.once("error", reject);
      session.once("close", () =>
        reject(new ConnectError("the server closed the connection", Code.Unavailable)),
      );
    });
    // Whoever awaits it gets the reason.
    this.opened.catch(ignore);
    if (!isLongLived) return;
    const timer = setInterval(() => {
      if (this.#streams > 0) void this.check();
    }, silenceMs).unref();
    session.once("close", () => clearInterval(timer));
  }

  /** Whether it accepts no more requests: it was closed, or the server has sent GOAWAY. */
  get isOver(): boolean {
    return this.session.closed || this.session.destroyed;
  }

  request(
    headers: http2.OutgoingHttpHeaders,
    options: http2.ClientSessionRequestOptions,
  ): http2.ClientHttp2Stream {
    const stream = this.session.request(headers, options);
    stream.on("error", ignore);
    this.#streams += 1;
    stream.once("close", () => {
      this.#streams -= 1;
    });
    return stream;
  }

  hear(): void {
    this.#heardMs = performance.now();
  }

  /** Pings a long-lived connection that has been silent, and closes it if no answer arrives. */
  check(): Promise<void> {
    const isSilent = this.#isLongLived && performance.now() - this.#heardMs >= silenceMs;
    if (!isSilent || this.isOver || this.session.connecting) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(
        () => this.destroy(new ConnectError("the server does not answer pings", Code.Unavailable)),
        pongMs,
      );
      this.session.ping((error) => {
        clearTimeout(timer);
        if (error === null) this.hear();
        resolve();
      });
    });
  }

  destroy(reason: Error): void {
    this.session.destroy(reason, http2.constants.NGHTTP2_CANCEL);
    // A session waits until its last bytes are sent. A peer that reads nothing, or never accepts the
    // connection, would keep it open.
    this.#socket.destroy();
  }
}

function openSocket({ protocol, hostname, port }: URL, caPem: string | undefined): net.Socket {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol === "http:") return net.connect({ host, port: Number(port || 80) });
  return tls.connect({
    host,
    port: Number(port || 443),
    ALPNProtocols: ["h2"],
    ...(net.isIP(host) === 0 && { servername: host }),
    ...(caPem !== undefined && { ca: caPem }),
  });
}

function ignore(): void {}
