/**
 * WireGuard in network namespaces: a gateway and peers, each with wireguard-go and an address on one bridge, and the
 * server and agents outside. UAPI sockets are files, so the agents need no namespace.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { launch, qspDone, qspJson, startQsp } from "../../../test/cli/qsp.ts";
import { isAbsent } from "../../../test/interop/readme-page.ts";
import { run } from "../../../test/interop/tools.ts";
import type { AtEnd } from "../../../test/support/at-end.ts";
import { inheritedEnvironment } from "../../../test/support/environment.ts";
import { findQuietPort } from "../../../test/support/find-quiet-port.ts";
import { password } from "../../../test/support/passwords.ts";
import { main } from "../../../test/support/program.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { socketDirectory } from "../uapi.ts";

/** What this machine lacks; empty if the tests can run. */
export const missing = ["wireguard", "wg", "ip", "root", "tun"].filter(isAbsent);
/** For titles of groups that are skipped. */
export const needs = missing.length === 0 ? "" : ` (needs ${missing.join(", ")})`;

/** Runs a program, which must succeed. */
export async function done(program: string, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, input);
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout.trim();
}

/** Network interfaces have short names, which all tests on a machine share. */
const prefix = `q${process.pid.toString(36)}`;
const serverPort = await findQuietPort();
const url = `http://127.0.0.1:${serverPort}`;
export const gatewayAddress = "10.8.0.1";

/** A program whose output the tests follow. */
export type Followed = ReturnType<typeof follow>;

function follow(process: ChildProcess) {
  const lines: string[] = [];
  let changed = Promise.withResolvers<void>();
  const wake = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const ended = once(process, "exit").then(wake);
  const isOver = () => process.exitCode !== null || process.signalCode !== null;
  for (const stream of [process.stdout, process.stderr])
    if (stream !== null)
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        wake();
      });
  return {
    process,
    lines,
    /** Waits for a line after those that `from` skips, which defaults to all so far. Fails when the program ends. */
    async next(pattern: RegExp, from = lines.length): Promise<string> {
      for (;;) {
        const found = lines.slice(from).find((line) => pattern.test(line));
        if (found !== undefined) return found;
        if (isOver()) throw new Error(`ended without ${pattern}: ${lines.slice(-5).join("\n")}`);
        await changed.promise;
      }
    },
    /** Sends a signal and waits for the end. */
    async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
      process.kill(signal);
      await ended;
    },
  };
}

/** One end: a namespace with wireguard-go. */
export type End = Awaited<ReturnType<Lab["makeEnd"]>>;

/** All that a test starts. */
export type Lab = Awaited<ReturnType<typeof buildLab>>;

/** Builds the network, with a server that has the user ada and the client gateway-agent. */
export async function buildLab(atEnd: AtEnd) {
  const cwd = makeTemporaryDirectory(atEnd);
  const dataDir = join(cwd, "data");
  const children: ChildProcess[] = [];
  const namespaces: string[] = [];
  const interfaces: string[] = [];
  const bridge = `${prefix}br`;
  atEnd(async () => {
    for (const child of children) child.kill("SIGKILL");
    for (const name of [...namespaces, bridge]) await run("ip", ["netns", "delete", name]);
    // A killed wireguard-go leaves its socket.
    for (const name of interfaces) rmSync(join(socketDirectory, `${name}.sock`), { force: true });
  });
  const track = (child: ChildProcess): Followed => {
    children.push(child);
    return follow(child);
  };
  const startIn = (namespace: string, args: readonly string[]): Followed =>
    track(spawn("ip", ["netns", "exec", namespace, ...args], { env: inheritedEnvironment() }));
  // In its own namespace: Chromium aborts requests when an interface of the machine comes or goes.
  const ip = (words: string) => done("ip", words.split(" "));
  await ip(`netns add ${bridge}`);
  await ip(`-n ${bridge} link add ${bridge} type bridge`);
  await ip(`-n ${bridge} link set ${bridge} up`);

  const makeEnd = async () => {
    const number = namespaces.length + 1;
    const namespace = `${prefix}n${number}`;
    const interfaceName = `${prefix}w${number}`;
    const cable = `${prefix}c${number}`;
    namespaces.push(namespace);
    interfaces.push(interfaceName);
    await ip(`netns add ${namespace}`);
    await ip(`-n ${bridge} link add ${cable} type veth peer name eth0 netns ${namespace}`);
    await ip(`-n ${bridge} link set ${cable} master ${bridge} up`);
    await ip(`-n ${namespace} address add 192.0.2.${number}/24 dev eth0`);
    for (const device of ["lo", "eth0"]) await ip(`-n ${namespace} link set ${device} up`);
    const privateKey = await done("wg", ["genkey"]);
    const publicKey = await done("wg", ["pubkey"], privateKey);
    const keyFile = join(cwd, `${namespace}.key`);
    writeFileSync(keyFile, privateKey);
    let device: Followed | undefined;
    return {
      namespace,
      interfaceName,
      publicKey,
      /** Reads a column of `wg show`, for the only peer. */
      show: async (column: "latest-handshakes" | "preshared-keys" | "transfer") =>
        (await done("wg", ["show", interfaceName, column])).split("\t").slice(1).join(" "),
      /** Starts wireguard-go, with the end's key and tunnel address. */
      async start(address: string) {
        device = startIn(namespace, ["env", "LOG_LEVEL=verbose", "wireguard", "--foreground", interfaceName]);
        await device.next(/UAPI listener started/, 0);
        await done("wg", ["set", interfaceName, "listen-port", "51820", "private-key", keyFile]);
        await ip(`-n ${namespace} address add ${address}/16 dev ${interfaceName}`);
        await ip(`-n ${namespace} link set ${interfaceName} up`);
      },
      kill: async () => device?.stop("SIGKILL"),
    };
  };
  type Peer = typeof gateway;
  const gateway = await makeEnd();
  await gateway.start(gatewayAddress);

  const secretFile = join(cwd, "client-secret");
  const passwordFile = join(cwd, "password");
  const env = { QSP_DATA_DIR: dataDir };
  await qspDone(["store", "init"], { cwd, env });
  await qspDone(["user", "add", "ada"], { cwd, env, stdin: `${password}\n` });
  const rights = ["--role", "admin", "--scope", "wireguard.gateway"];
  writeFileSync(secretFile, await qspDone(["client", "add", "gateway-agent", ...rights], { cwd, env }));
  writeFileSync(passwordFile, `${password}\n`);

  const startAgent = async (args: readonly string[], program = main): Promise<Followed> => {
    const words = [program, "wireguard", "up", ...args];
    const agent = track(launch(process.execPath, words, { cwd, url }).child);
    await agent.next(/qsp wireguard is up/, 0);
    return agent;
  };
  return {
    /** Where users' files are. */
    cwd,
    gateway,
    makeEnd,
    async startServer(): Promise<Followed> {
      const flags = ["--port", String(serverPort), "--data-dir", dataDir, "--auth", "token"];
      const server = track(startQsp(["serve", ...flags, "--issuer-url", url], { cwd }).child);
      await server.next(/is ready on/, 0);
      return server;
    },
    async startGatewayAgent(): Promise<Followed> {
      const login = ["--client", "gateway-agent", "--client-secret-file", secretFile];
      const place = ["--interface", gateway.interfaceName, "--gateway", "--endpoint", "192.0.2.1:51820"];
      const agent = await startAgent([...place, ...login]);
      await agent.next(/has listed its peers/, 0);
      return agent;
    },
    /**
     * Registers a peer.
     *
     * @returns the path of its file, and its address
     */
    async join({ publicKey, namespace }: Peer) {
      const state = join(cwd, `${namespace}.json`);
      await qspDone(["login", "ada"], { cwd, url, stdin: `${password}\n` });
      const args = ["wireguard", "join", "--wireguard-public-key", publicKey, "--out", state];
      const { assignedIp } = await qspJson(args, { cwd, url });
      return { state, address: String(assignedIp) };
    },
    startPeerAgent(peer: Peer, state: string, isQuick = false): Promise<Followed> {
      const login = ["--username", "ada", "--password-file", passwordFile];
      const args = ["--interface", peer.interfaceName, "--state", state, ...login];
      return startAgent(args, isQuick ? join(import.meta.dirname, "quick-agent.ts") : undefined);
    },
    /** Opens a connection from a peer to the gateway. */
    async startTraffic(peer: Peer): Promise<Followed> {
      const program = join(import.meta.dirname, "traffic.ts");
      const from = [process.execPath, program];
      const listener = startIn(gateway.namespace, [...from, "listen", gatewayAddress]);
      await listener.next(/listening|EADDRINUSE/, 0);
      const sender = startIn(peer.namespace, [...from, "send", gatewayAddress]);
      await sender.next(/"echoed":[1-9]/, 0);
      return sender;
    },
  };
}
