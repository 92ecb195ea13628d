/** Runs the compiled program: servers behind Envoy, and commands. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { compiledMain } from "../src/setup/freshness.mjs";

/** A running server. */
export interface GatewayServer {
  /** "127.0.0.1:port" */
  readonly authority: string;
  /** Resolves with the exit code, or the signal, when it has ended. */
  readonly exit: Promise<number | NodeJS.Signals>;
  /** Sentences about a new store and a new master key. */
  readonly created: readonly string[];
  /** Stops the server after its running calls. */
  stop(): Promise<number | NodeJS.Signals>;
}

/** A server or a command ended unexpectedly; it has already printed the reason. */
export class ServerEnded extends Error {}

/** 1 KiB above the limit in metadata.lua, because Envoy adds its own metadata to a request. */
const maxMetadataBytes = 16_384 + 1024;

/**
 * Starts a server on a free port and waits until it is ready. Its log goes to standard error.
 *
 * @throws ServerEnded
 */
export async function startGatewayServer(args: readonly string[]): Promise<GatewayServer> {
  const child = spawn(
    process.execPath,
    [
      ...["--max-semi-space-size=64", compiledMain, "serve", "--port", "0"],
      ...["--max-metadata-bytes", String(maxMetadataBytes)],
      // Envoy reports the client's address for each call that it forwards.
      ...["--trusted-proxies", "127.0.0.1,::1", ...args],
    ],
    // Its own process group, as in edge.ts.
    { stdio: ["ignore", "pipe", "inherit"], detached: true },
  );
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const exit = once(child, "close").then(([code, signal]): number | NodeJS.Signals => {
    process.off("exit", kill);
    return code ?? signal;
  });
  const { authority, created } = await Promise.race([
    readStart(child),
    exit.then((code) => {
      throw new ServerEnded(`a server ended with ${code} before it was ready; see its message above`);
    }),
  ]);
  const stop = (): Promise<number | NodeJS.Signals> => {
    child.kill("SIGTERM");
    return exit;
  };
  return { authority, created, exit, stop };
}

/**
 * Runs an operator command to its end and discards its output.
 *
 * @throws ServerEnded if it fails
 */
export async function runCommand(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [compiledMain, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  const [code, signal] = await once(child, "close");
  if (code !== 0)
    throw new ServerEnded(`qsp ${args.join(" ")} ended with ${code ?? signal}; see its message above`);
}

/** Reads a server's output until it is ready. */
function readStart(child: ChildProcess): Promise<Pick<GatewayServer, "authority" | "created">> {
  return new Promise((resolve) => {
    let output = "";
    child.stdout?.on("data", (chunk) => {
      output += chunk;
      const [, authority] = /ready on http:\/\/(\S+)\n/.exec(output) ?? [];
      if (authority !== undefined)
        resolve({ authority, created: output.match(/^Created a new .*$/gm) ?? [] });
    });
  });
}
