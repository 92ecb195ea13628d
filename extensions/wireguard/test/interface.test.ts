/**
 * WireGuard interfaces: the text protocol over a socket, with answers of wireguard-go and of programs that are not
 * WireGuard, and the program wg, where no socket exists.
 */
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import net, { type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openInterface } from "../interface.ts";
import { formatChanges, parsePeers } from "../uapi.ts";
import { formatArguments, parseDump } from "../wg-program.ts";

/** RFC 7748, section 6.1: Alice's keys. */
const privateKey = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
const publicKeyHex = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
const publicKey = Buffer.from(publicKeyHex, "hex").toString("base64");
const presharedKey = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const presharedHex = Buffer.from(presharedKey).toString("hex");

const answer = `private_key=${privateKey}
listen_port=51820
public_key=${publicKeyHex}
preshared_key=${presharedHex}
protocol_version=1
endpoint=192.0.2.1:51820
last_handshake_time_sec=1795812784
last_handshake_time_nsec=441999999
tx_bytes=296
rx_bytes=92
persistent_keepalive_interval=5
allowed_ip=10.8.0.1/32
allowed_ip=fd00::/8
errno=0

`;

/** An interface whose program does this with each connection. */
async function serve(onConnection: (socket: Socket) => void) {
  const directory = makeTemporaryDirectory();
  const open = new Set<Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  server.listen(join(directory, "wg0.sock"));
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return openInterface("wg0", directory);
}

const saying = (text: string) => serve((socket) => socket.once("data", () => socket.write(text)));

describe("an interface", () => {
  it("has peers with all that the agent needs", async () => {
    const inPieces = await serve((socket) =>
      socket.once("data", async () => {
        for (const character of answer) if (!socket.write(character)) await once(socket, "drain");
      }),
    );
    const place = { endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32", "fd00::/8"] };
    const peer = { publicKey, presharedKey, handshakeMs: 1_795_812_784_441, ...place };
    for (const wireguard of [await saying(answer), inPieces])
      expect(await wireguard.readPeers()).toEqual([peer]);
  });

  it("has the public key of its private key, or none", async () => {
    expect(await (await saying(answer)).readPublicKey()).toBe(publicKey);
    expect(await (await saying("errno=0\n\n")).readPublicKey()).toBeUndefined();
  });

  const wrongNames = ["wg0/../x", "", ".", "-x", "a name", "sixteen-letters-", "wg0\n"];
  it.each(wrongNames)("cannot be named %j", (name) => {
    expect(() => openInterface(name)).toThrow(/is not the name of an interface/);
  });
});

describe("a change", () => {
  it("is one request, in which the key comes before anything that starts a handshake", () => {
    const place = { endpoint: "192.0.2.1:1", allowedIps: ["10.8.0.1/32"], keepaliveSeconds: 5 };
    const change = { publicKey, presharedKey, ...place };
    const properties = `preshared_key=${presharedHex}\nendpoint=192.0.2.1:1\nreplace_allowed_ips=true\nallowed_ip=10.8.0.1/32\npersistent_keepalive_interval=5\n`;
    const peer = `public_key=${publicKeyHex}\n`;
    expect(formatChanges([{ kind: "set", ...change }]).toString()).toBe(`set=1\n${peer}${properties}\n`);
    expect(formatChanges([{ kind: "renew", ...change }]).toString()).toBe(
      `set=1\n${peer}remove=true\n${peer}${properties}\n`,
    );
    expect(formatChanges([{ kind: "remove", publicKey }]).toString()).toBe(`set=1\n${peer}remove=true\n\n`);
  });

  it("is read back: a program that keeps another key is reported", async () => {
    const requests: string[] = [];
    const wireguard = await serve((socket) =>
      socket.on("data", (data) => {
        requests.push(data.toString());
        socket.write(data.toString().startsWith("get") ? answer : "errno=0\n\n");
      }),
    );
    await wireguard.change([{ publicKey, kind: "set", presharedKey }]);
    expect(requests).toHaveLength(2);
    const other = wireguard.change([{ publicKey, kind: "set", presharedKey: new Uint8Array(32).fill(9) }]);
    await expect(other).rejects.toThrow(`the interface did not take the preshared key of peer ${publicKey}`);
  });
});

describe("a program that is not WireGuard", () => {
  afterEach(() => void vi.useRealTimers());

  const peer = `public_key=${publicKeyHex}\n`;
  const end = "errno=0\n\n";
  it.each([
    ["refuses", "errno=-22\n\n", "WireGuard refused the change or the question (errno -22)"],
    ["sends no errno", "listen_port=1\n\n", "answer has no errno"],
    ["sends an errno that is a story", "errno=once upon a time\n\n", "answer has no errno"],
    ["sends text", "hello\n\n", "answer has a line without a value"],
    ["sends a long line", `x=${"y".repeat(2000)}\n\n`, "has a line of more than 1024 bytes"],
    ["sends a short key", `public_key=00\n${end}`, "public_key that is not 64 hexadecimal digits"],
    ["sends other letters", `${peer}preshared_key=${"zz".repeat(32)}\n${end}`, "key that is not 64"],
    ["sends a time that is none", `${peer}last_handshake_time_sec=soon\n${end}`, "that is not a number"],
    ["sends many addresses", `${peer}${"allowed_ip=::/8\n".repeat(1025)}${end}`, "more than 1024 addresses"],
  ])("and %s, is reported in a sentence", async (_name, text, sentence) => {
    await expect((await saying(text)).readPeers()).rejects.toThrow(sentence);
  });

  it("and sends peers without end, is cut off", () => {
    expect(() => parsePeers(Buffer.from(peer.repeat(65_537)))).toThrow("has more than 65536 peers");
  });

  it("and sends bytes without end, is cut off", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    const wireguard = await serve((socket) => {
      const flood = (): void => {
        while (!socket.destroyed && socket.write(chunk));
      };
      socket.on("drain", flood);
      flood();
    });
    await expect(wireguard.readPeers()).rejects.toThrow("sent more than 33554432 bytes");
  });

  it("and ends the connection, is reported in a sentence", async () => {
    const wireguard = await serve((socket) => socket.end("errno=0\n"));
    await expect(wireguard.readPeers()).rejects.toThrow("ended the connection before its answer");
  });

  it("and never answers, is cut off", async () => {
    const connected = Promise.withResolvers<void>();
    const wireguard = await serve(() => connected.resolve());
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const reading = expect(wireguard.readPeers()).rejects.toThrow("did not answer in time");
    await connected.promise;
    vi.advanceTimersByTime(10_000);
    await reading;
  });
});

const presharedText = Buffer.from(presharedKey).toString("base64");
const own = `${publicKey}\t${publicKey}\t51820\toff\n`;
const line = [
  ...[publicKey, presharedText, "192.0.2.1:51820", "10.8.0.1/32,fd00::/8"],
  ...["1795812784", "92", "296", "5"],
];

/** An interface without a socket, and a program wg that is this script. */
function withWg(script: string | undefined) {
  const directory = makeTemporaryDirectory();
  if (script !== undefined) {
    const path = join(directory, "wg");
    writeFileSync(path, `#!/bin/sh\ncd ${directory}\n${script}\n`);
    chmodSync(path, 0o755);
  }
  const before = process.env.PATH;
  onTestFinished(() => {
    process.env.PATH = before;
  });
  process.env.PATH = script === undefined ? directory : `${directory}:${before}`;
  return {
    directory,
    wireguard: openInterface("wg0", directory),
    read: (name: string) => readFileSync(join(directory, name), "utf8"),
  };
}

describe("wg", () => {
  it("prints peers with all that the agent needs and wg knows", () => {
    const parse = (fields: string[]) => parseDump(Buffer.from(`${own}${fields.join("\t")}\n`));
    const place = { endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32", "fd00::/8"] };
    expect(parse(line)).toEqual([{ publicKey, presharedKey, handshakeMs: 1_795_812_784_000, ...place }]);
    const unknown = { presharedKey: new Uint8Array(32), endpoint: undefined, handshakeMs: 0, allowedIps: [] };
    const fields = [publicKey, "(none)", "(none)", "(none)", "0", "0", "0", "off"];
    expect(parse(fields)).toEqual([{ publicKey, ...unknown }]);
    expect(parseDump(Buffer.from(own))).toEqual([]);
  });

  it.each([line.slice(1), line.with(0, "key"), line.with(1, "key"), line.with(4, "soon")])(
    "prints something else: %s",
    (...fields) => {
      expect(() => parseDump(Buffer.from(`${own}${fields.join("\t")}\n`))).toThrow(
        "a line of an unknown form",
      );
    },
  );

  it("gets the key from a pipe, never as an argument", async () => {
    const script = `echo "$@" >> arguments; [ "$1" = set ] && cat /dev/stdin > input; [ "$1" = set ] || printf '${own}${line.join("\\t")}\\n'`;
    const { wireguard, read } = withWg(`${script.replaceAll("\n", "\\n").replaceAll("\t", "\\t")}; true`);
    const place = { endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32"], keepaliveSeconds: 5 };
    await wireguard.change([{ publicKey, kind: "renew", presharedKey, ...place }]);
    expect(read("input")).toBe(`${presharedText}\n`);
    expect(read("arguments").split("\n")).toEqual([
      `set wg0 peer ${publicKey} remove peer ${publicKey} preshared-key /dev/stdin endpoint 192.0.2.1:51820 persistent-keepalive 5 allowed-ips 10.8.0.1/32`,
      "show wg0 dump",
      "",
    ]);
  });

  it("removes a peer", () => {
    expect(formatArguments({ publicKey, kind: "remove" })).toEqual(["peer", publicKey, "remove"]);
  });

  it("is reported if it fails, or is missing", async () => {
    const script = "echo 'Unable to access interface:\n No such device' >&2; exit 1";
    const { wireguard, directory } = withWg(script);
    await expect(wireguard.readPeers()).rejects.toThrow(
      `wg0 has no socket ${directory}/wg0.sock, and wg failed: Unable to access interface: No such device`,
    );
    await expect(withWg(undefined).wireguard.readPeers()).rejects.toThrow("the program wg is not installed");
  });
});
