/** Drives an interface through the program wg, for example one of the kernel's module. Keys pass only through pipes. */
import { type ExecFileException, execFile } from "node:child_process";
import { wipe } from "../../src/crypto/bytes.ts";
import {
  type InterfaceDriver,
  InterfaceError,
  type InterfacePeer,
  type PeerChange,
} from "./interface-driver.ts";
import { maxAnswerBytes, maxPeers } from "./uapi.ts";

/** Milliseconds that a run of wg may take. */
const maxRunMs = 10_000;
const maxComplaintBytes = 500;

/**
 * Creates a driver that runs wg once per operation and peer.
 *
 * @param socket what the interface lacks, for error messages
 */
export function createWgProgram(name: string, socket: string): InterfaceDriver {
  const runWg = (args: readonly string[], presharedKey?: Uint8Array): Promise<Buffer> =>
    runProgram(args, `${name} has no socket ${socket}`, presharedKey);
  return {
    async readPublicKey() {
      const [key] = (await runWg(["show", name, "public-key"])).toString("latin1").split("\n");
      return key === undefined || key === "(none)" ? undefined : key;
    },
    async readPeers() {
      const dump = await runWg(["show", name, "dump"]);
      try {
        return parseDump(dump);
      } finally {
        wipe(dump);
      }
    },
    async change(changes) {
      // One run for each peer: standard input holds a single key.
      for (const change of changes)
        await runWg(["set", name, ...formatArguments(change)], change.presharedKey);
    },
  };
}

/** Formats one peer's arguments (wg(8), "set"). The preshared key comes from standard input. */
export function formatArguments({ publicKey, kind, ...change }: PeerChange): string[] {
  const { presharedKey, endpoint, allowedIps, keepaliveSeconds } = change;
  const removed = ["peer", publicKey, "remove"];
  if (kind === "remove") return removed;
  return [
    ...(kind === "renew" ? removed : []),
    ...["peer", publicKey],
    ...(presharedKey === undefined ? [] : ["preshared-key", "/dev/stdin"]),
    ...(endpoint === undefined ? [] : ["endpoint", endpoint]),
    ...(keepaliveSeconds === undefined ? [] : ["persistent-keepalive", String(keepaliveSeconds)]),
    ...(allowedIps === undefined ? [] : ["allowed-ips", allowedIps.join(",")]),
  ];
}

/**
 * Node's pipes are sockets, which wg cannot open by name: the shell passes the key on through a pipe of its own. If the
 * agent ends before it has written the key, wg does not run: it would take an empty input for an empty key.
 */
const withKey = `IFS= read -r key && printf '%s\\n' "$key" | wg "$@"`;

/**
 * Runs wg. The caller wipes what it printed.
 *
 * @param why why wg runs, for error messages
 */
function runProgram(args: readonly string[], why: string, presharedKey?: Uint8Array): Promise<Buffer> {
  const limits = { timeout: maxRunMs, killSignal: "SIGKILL", maxBuffer: maxAnswerBytes } as const;
  const [file, all] = presharedKey === undefined ? ["wg", args] : ["sh", ["-c", withKey, "sh", ...args]];
  return new Promise((resolve, reject) => {
    const child = execFile(file, all, { ...limits, encoding: "buffer" }, (error, printed, complaint) => {
      if (error === null) return resolve(printed);
      wipe(printed);
      reject(new InterfaceError(`${why}, and ${explain(error, complaint)}`, { cause: error }));
    });
    child.stdin?.on("error", () => {}); // wg may end without reading.
    child.stdin?.end(presharedKey && `${Buffer.from(presharedKey).toString("base64")}\n`);
  });
}

function explain({ code, killed }: ExecFileException, complaint: Buffer): string {
  if (code === "ENOENT") return "the program wg is not installed (Debian: wireguard-tools)";
  if (killed) return "wg did not end in time, or printed too much";
  const words = complaint.subarray(0, maxComplaintBytes).toString("latin1").replaceAll(/\s+/g, " ").trim();
  return `wg failed: ${words || `exit code ${code}`}`;
}

/** Fields of a peer's line in `wg show INTERFACE dump`; the first line describes the interface. */
const peerFields = 8;
const keyForm = /^[A-Za-z0-9+/]{43}=$/;
const none = "(none)";

/**
 * Parses `wg show INTERFACE dump`. Its first line holds the interface's private key, and is skipped.
 *
 * @throws InterfaceError
 */
export function parseDump(dump: Buffer): InterfacePeer[] {
  const peers = dump
    .subarray(dump.indexOf(0x0a) + 1)
    .toString("latin1")
    .split("\n")
    .filter(Boolean);
  if (peers.length > maxPeers) throw new InterfaceError(`wg printed more than ${maxPeers} peers`);
  return peers.map(parsePeer);
}

function parsePeer(line: string): InterfacePeer {
  const fields = line.split("\t");
  const [publicKey = "", presharedKey = "", endpoint, allowedIps = "", handshake = ""] = fields;
  const areKeys = keyForm.test(publicKey) && (presharedKey === none || keyForm.test(presharedKey));
  if (fields.length !== peerFields || !areKeys || !/^\d{1,11}$/.test(handshake))
    throw new InterfaceError("wg printed a line of an unknown form");
  return {
    publicKey,
    presharedKey:
      presharedKey === none ? new Uint8Array(32) : Uint8Array.from(Buffer.from(presharedKey, "base64")),
    endpoint: endpoint === none ? undefined : endpoint,
    handshakeMs: Number(handshake) * 1000,
    allowedIps: allowedIps === none ? [] : allowedIps.split(","),
  };
}
