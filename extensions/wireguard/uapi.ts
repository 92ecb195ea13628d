/**
 * WireGuard's cross-platform user space interface: the text protocol "get=1" and "set=1" over a Unix socket
 * (wireguard.com/xplatform). The program behind the socket is not trusted to answer well.
 */
import { createPrivateKey, createPublicKey } from "node:crypto";
import net from "node:net";
import { wipe } from "../../src/crypto/bytes.ts";
import { describeSystemError } from "../../src/system-error.ts";
import {
  type InterfaceDriver,
  InterfaceError,
  type InterfacePeer,
  type PeerChange,
} from "./interface-driver.ts";

export const socketDirectory = "/var/run/wireguard";

/** Room for wireguard-go's limit of 65,536 peers with a few addresses each. */
export const maxAnswerBytes = 32 * 1024 * 1024;
/** Milliseconds until an answer must be complete. */
const maxAnswerMs = 10_000;
export const maxPeers = 65_536;
const maxAllowedIps = 1024;
const keyBytes = 32;
const maxLineBytes = 1024;

/** Creates a driver that opens one connection per operation. */
export function createUapi(socket: string): InterfaceDriver {
  const ask = async <T>(request: Uint8Array, parse: (answer: Uint8Array) => T): Promise<T> => {
    const answer = await exchange(socket, request).finally(() => wipe(request));
    try {
      return parse(answer);
    } finally {
      wipe(answer);
    }
  };
  const getAll = () => Buffer.from("get=1\n\n");
  return {
    readPublicKey: () => ask(getAll(), readOwnKey),
    readPeers: () => ask(getAll(), parsePeers),
    change: (changes) => ask(formatChanges(changes), (answer) => void [...readLines(answer)]),
  };
}

/** Sends a request and reads its answer, up to the empty line. The caller wipes it. */
function exchange(socket: string, request: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ path: socket });
    let chunks: Buffer[] = [];
    let length = 0;
    const end = (error: Error | undefined, answer?: Buffer): void => {
      clearTimeout(timer);
      connection.destroy();
      wipe(...chunks);
      chunks = [];
      if (answer === undefined) reject(new InterfaceError(`${socket} ${error?.message}`, { cause: error }));
      else resolve(answer);
    };
    const timer = setTimeout(() => end(new Error("did not answer in time")), maxAnswerMs);
    connection.on("error", (error) => end(new Error(`cannot be used: ${describeSystemError(error)}`)));
    connection.on("end", () => end(new Error("ended the connection before its answer")));
    connection.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxAnswerBytes) return end(new Error(`sent more than ${maxAnswerBytes} bytes`));
      if (!endsAnswer(chunks)) return;
      end(undefined, Buffer.concat(chunks));
    });
    connection.write(request);
  });
}

/** Whether the last two bytes are line feeds, even in different chunks. */
function endsAnswer(chunks: readonly Buffer[]): boolean {
  const last = chunks.at(-1);
  if (last?.at(-1) !== lineFeed) return false;
  return (last.length > 1 ? last.at(-2) : chunks.at(-2)?.at(-1)) === lineFeed;
}

const [lineFeed, equals] = [0x0a, 0x3d];

interface Line {
  readonly name: string;
  /** A view of the answer: secret values must not become strings, which cannot be wiped. */
  readonly value: Uint8Array;
}

function* splitLines(answer: Uint8Array): Generator<Line> {
  for (let at = 0; at < answer.length; ) {
    const end = answer.indexOf(lineFeed, at);
    const line = answer.subarray(at, end < 0 ? answer.length : end);
    if (line.length > maxLineBytes) throw unusable(`has a line of more than ${maxLineBytes} bytes`);
    at += line.length + 1;
    if (line.length === 0) continue;
    const split = line.indexOf(equals);
    if (split < 0) throw unusable("has a line without a value");
    yield { name: decode(line.subarray(0, split)), value: line.subarray(split + 1) };
  }
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

function unusable(what: string): InterfaceError {
  return new InterfaceError(`WireGuard's answer ${what}`);
}

/**
 * Reads the lines of an answer except errno.
 *
 * @throws InterfaceError, unless errno is 0, after the other lines
 */
function* readLines(answer: Uint8Array): Generator<Line> {
  let errno: string | undefined;
  for (const line of splitLines(answer))
    if (line.name === "errno") errno = decode(line.value);
    else yield line;
  if (errno === "0") return;
  if (errno === undefined || !/^-?\d{1,9}$/.test(errno)) throw unusable("has no errno");
  throw new InterfaceError(`WireGuard refused the change or the question (errno ${errno})`);
}

/** A peer while its lines are read. */
interface PeerDraft {
  publicKey: string;
  presharedKey: Uint8Array;
  endpoint: string | undefined;
  seconds: number;
  nanoseconds: number;
  allowedIps: string[];
}

/**
 * Parses the peers of an answer to "get=1". Unknown lines are skipped, as the protocol may get more.
 *
 * @throws InterfaceError
 */
export function parsePeers(answer: Uint8Array): InterfacePeer[] {
  const peers: PeerDraft[] = [];
  try {
    for (const { name, value } of readLines(answer)) {
      if (name === "public_key") {
        if (peers.length === maxPeers) throw unusable(`has more than ${maxPeers} peers`);
        peers.push({
          publicKey: Buffer.from(readKey(name, value)).toString("base64"),
          presharedKey: new Uint8Array(keyBytes),
          endpoint: undefined,
          seconds: 0,
          nanoseconds: 0,
          allowedIps: [],
        });
      } else readPeerLine(peers.at(-1), name, value);
    }
  } catch (error) {
    wipe(...peers.map(({ presharedKey }) => presharedKey));
    throw error;
  }
  return peers.map(({ seconds, nanoseconds, ...peer }) => ({
    ...peer,
    handshakeMs: seconds * 1000 + Math.floor(nanoseconds / 1e6),
  }));
}

function readPeerLine(peer: PeerDraft | undefined, name: string, value: Uint8Array): void {
  if (peer === undefined) return;
  if (name === "preshared_key") peer.presharedKey = readKey(name, value);
  else if (name === "endpoint") peer.endpoint = decode(value);
  else if (name === "last_handshake_time_sec") peer.seconds = readCount(name, value, 1e11);
  else if (name === "last_handshake_time_nsec") peer.nanoseconds = readCount(name, value, 1e9);
  else if (name === "allowed_ip") {
    if (peer.allowedIps.length === maxAllowedIps)
      throw unusable(`has a peer with more than ${maxAllowedIps} addresses`);
    peer.allowedIps.push(decode(value));
  }
}

function readCount(name: string, value: Uint8Array, max: number): number {
  const text = decode(value);
  if (!/^\d{1,15}$/.test(text) || Number(text) > max) throw unusable(`has a ${name} that is not a number`);
  return Number(text);
}

/** Reads 64 hexadecimal digits without making a string of them. */
function readKey(name: string, value: Uint8Array): Uint8Array {
  const key = new Uint8Array(keyBytes);
  const isKey =
    value.length === 2 * keyBytes &&
    key.every((_, i) => {
      const [high, low] = [readDigit(value[2 * i]), readDigit(value[2 * i + 1])];
      key[i] = (high << 4) | low;
      return high >= 0 && low >= 0;
    });
  if (isKey) return key;
  wipe(key);
  throw unusable(`has a ${name} that is not 64 hexadecimal digits`);
}

function readDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}

/** PKCS#8 header of an X25519 key (RFC 8410, section 7); the 32 bytes of the key follow. */
const pkcs8Header = Buffer.from("302e020100300506032b656e04220420", "hex");

/** Computes the interface's public key: the protocol shows only its private key. */
function readOwnKey(answer: Uint8Array): string | undefined {
  let privateKey: Uint8Array | undefined;
  for (const { name, value } of readLines(answer))
    if (name === "private_key") privateKey = readKey(name, value);
  if (privateKey === undefined) return undefined;
  const der = Buffer.concat([pkcs8Header, privateKey]);
  try {
    const publicKey = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
    return publicKey.export({ format: "der", type: "spki" }).subarray(-keyBytes).toString("base64");
  } finally {
    wipe(der, privateKey);
  }
}

/** Formats a "set=1" request. The caller wipes it. */
export function formatChanges(changes: readonly PeerChange[]): Buffer {
  const lines = changes.flatMap(({ publicKey, kind, ...change }): Uint8Array[] => {
    const peer = line("public_key", Buffer.from(publicKey, "base64").toString("hex"));
    const removed = [peer, line("remove", "true")];
    if (kind === "remove") return removed;
    return [...(kind === "renew" ? removed : []), peer, ...formatProperties(change)];
  });
  const request = Buffer.concat([line("set", "1"), ...lines, Buffer.from("\n")]);
  wipe(...lines);
  return request;
}

function formatProperties(change: Omit<PeerChange, "publicKey" | "kind">): Uint8Array[] {
  const { presharedKey, endpoint, allowedIps, keepaliveSeconds } = change;
  return [
    ...(presharedKey === undefined
      ? []
      : [Buffer.from("preshared_key="), formatHex(presharedKey), Buffer.from("\n")]),
    ...(endpoint === undefined ? [] : [line("endpoint", endpoint)]),
    ...(allowedIps === undefined
      ? []
      : [line("replace_allowed_ips", "true"), ...allowedIps.map((address) => line("allowed_ip", address))]),
    ...(keepaliveSeconds === undefined
      ? []
      : [line("persistent_keepalive_interval", String(keepaliveSeconds))]),
  ];
}

function line(name: string, value: string): Uint8Array {
  return Buffer.from(`${name}=${value}\n`);
}

/** Hexadecimal digits as bytes: a string of a secret cannot be wiped. */
function formatHex(bytes: Uint8Array): Uint8Array {
  const digits = Buffer.from("0123456789abcdef");
  return Uint8Array.from({ length: 2 * bytes.length }, (_, i) => {
    const byte = bytes[i >> 1] ?? 0;
    return digits[i % 2 === 0 ? byte >> 4 : byte & 15] ?? 0;
  });
}
