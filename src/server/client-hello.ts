/**
 * Reads a client's ClientHello before TLS does: Node reports neither the groups nor the signature algorithms
 * that a client offers.
 */
import type { Socket } from "node:net";
import type { Server, TLSSocket } from "node:tls";

/** Code points that a ClientHello offers, in the client's order. */
export interface Offers {
  readonly groups: Uint16Array;
  readonly signatureAlgorithms: Uint16Array;
}

/** Maximum length to wait for. A ClientHello with an ML-KEM-768 share has about 1,800 bytes. */
const maxHelloBytes = 16 * 1024;
/** Maximum records. All clients send one, so the limit only bounds the work of reading tiny ones. */
const maxRecords = 32;
/** Maximum code points to keep of each list. */
const maxCodePoints = 100;

const offersKey = Symbol("offers");
type Keyed = Socket & { [offersKey]?: Offers | undefined };

/** Returns the offers of a connection; undefined if its ClientHello could not be read. */
export function findOffers(socket: TLSSocket): Offers | undefined {
  return (socket as Keyed)[offersKey];
}

/** Keeps the offers that arrived on a TCP connection for its TLS connection. */
export function moveOffers(from: Socket, to: TLSSocket): void {
  (to as Keyed)[offersKey] = (from as Keyed)[offersKey];
}

/**
 * Reads the first bytes of every connection of a server, until the ClientHello is complete or cannot be read,
 * and then lets TLS read them: only TLS decides what is wrong with them.
 *
 * @param maxMs milliseconds for the ClientHello to arrive
 */
export function watchClientHellos(server: Server, maxMs: number): void {
  const startTls = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Keyed) => {
    let seen = Buffer.alloc(0);
    const drop = (): void => void socket.destroy();
    const timer = setTimeout(drop, maxMs);
    const stopTimer = (): void => clearTimeout(timer);
    const inspect = (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      seen = Buffer.concat([seen, chunk]);
      const offers = readClientHello(seen);
      if (offers === "incomplete") return;
      socket[offersKey] = offers;
      stopTimer();
      socket.off("readable", inspect).off("end", drop).off("close", stopTimer);
      socket.unshift(seen);
      for (const start of startTls) start.call(server, socket);
    };
    socket.on("readable", inspect).once("end", drop).once("close", stopTimer);
  });
}

/**
 * Reads the ClientHello at the start of a connection (RFC 8446, sections 4.1.2 and 5.1).
 *
 * @returns undefined for anything else, including a ClientHello that is malformed or too long
 */
export function readClientHello(bytes: Buffer): Offers | "incomplete" | undefined {
  try {
    const hello = joinRecords(bytes);
    return hello instanceof Uint8Array ? readOffers(new Cursor(hello)) : hello;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** ContentType handshake (RFC 8446, section 5.1). */
const handshakeRecord = 22;
/** HandshakeType client_hello (RFC 8446, section 4). */
const clientHello = 1;

/** Joins the fragments of the first handshake message, which may be spread over several records. */
function joinRecords(bytes: Buffer): Buffer | "incomplete" | undefined {
  const fragments: Buffer[] = [];
  let received = 0;
  let length: number | undefined;
  let at = 0;
  while (fragments.length < maxRecords && at < bytes.length) {
    if (bytes[at] !== handshakeRecord) return undefined;
    if (bytes.length < at + 5) break;
    const fragment = bytes.subarray(at + 5, at + 5 + bytes.readUInt16BE(at + 3));
    fragments.push(fragment);
    received += fragment.length;
    at += 5 + bytes.readUInt16BE(at + 3);
    if (length === undefined && received >= 4) {
      const message = Buffer.concat(fragments);
      length = 4 + message.readUIntBE(1, 3);
      if (message[0] !== clientHello || length > maxHelloBytes) return undefined;
    }
    if (length !== undefined && received >= length) return Buffer.concat(fragments).subarray(4, length);
  }
  return fragments.length < maxRecords && bytes.length < maxHelloBytes ? "incomplete" : undefined;
}

/** ExtensionType values (RFC 8446, section 4.2). */
const supportedGroups = 10;
const signatureAlgorithms = 13;

function readOffers(hello: Cursor): Offers {
  hello.take(2 + 32); // legacy_version, random
  hello.takeVector(1); // legacy_session_id
  hello.takeVector(2); // cipher_suites
  hello.takeVector(1); // legacy_compression_methods
  const extensions = new Map<number, Buffer>();
  for (const list = new Cursor(hello.takeVector(2)); !list.isAtEnd; )
    extensions.set(list.takeNumber(2), list.takeVector(2));
  return {
    groups: readCodePoints(extensions.get(supportedGroups)),
    signatureAlgorithms: readCodePoints(extensions.get(signatureAlgorithms)),
  };
}

function readCodePoints(extension: Buffer | undefined): Uint16Array {
  if (extension === undefined) return new Uint16Array();
  const list = new Cursor(extension).takeVector(2);
  const count = Math.min(list.length >> 1, maxCodePoints);
  return Uint16Array.from({ length: count }, (_none, index) => list.readUInt16BE(2 * index));
}

/** Reads the presentation language of TLS (RFC 8446, section 3). All methods throw a RangeError at the end. */
class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(length: number): Buffer {
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    if (taken.length < length) throw new RangeError("the structure ends too early");
    this.#at += length;
    return taken;
  }

  takeNumber(length: number): number {
    return this.take(length).readUIntBE(0, length);
  }

  /** @param lengthBytes the size of the vector's length prefix */
  takeVector(lengthBytes: number): Buffer {
    return this.take(this.takeNumber(lengthBytes));
  }
}
