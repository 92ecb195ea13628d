/** Runs `qsp k8s-kms` as an operator would, and calls it like an API server. */
import { mkdirSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { KeyManagementService } from "#gen/kubernetes/kms_pb.ts";
import { startQsp } from "../../../test/cli/qsp.ts";
import type { Run } from "../../../test/support/run-here.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

/** A running plugin. */
export type RunningPlugin = Awaited<ReturnType<typeof startPlugin>>;

/** Returns a socket path in a directory that only this user can write to. */
export function makeSocketPath(atEnd?: (remove: () => void) => void): string {
  const directory = join(makeTemporaryDirectory(atEnd), "run");
  mkdirSync(directory, { mode: 0o700 });
  return join(directory, "kms.sock");
}

/** Starts a plugin and waits until it is ready. It stops with its test. */
export async function startPlugin(
  { url = "", key = "name/etcd", args = [] as readonly string[], socket = makeSocketPath() },
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
) {
  const cwd = makeTemporaryDirectory((remove) => atEnd(async () => remove()));
  const words = ["k8s-kms", "--socket", socket, "--key", key, ...args];
  const { child, end } = startQsp(words, { cwd, url });
  const printed = { stdout: "", stderr: "" };
  child.stderr?.on("data", (chunk) => {
    printed.stderr += chunk;
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on("data", (chunk) => {
      printed.stdout += chunk;
      if (/is ready on unix:/.test(printed.stdout)) resolve();
    });
    void end.then(({ code, stderr }) =>
      reject(new Error(`the plugin exited with ${code} before it was ready: ${stderr}`)),
    );
  });
  const { client, close } = connectTo(socket);
  const signal = (name: NodeJS.Signals): void => void child.kill(name);
  const stop = (): Promise<Run> => {
    signal("SIGTERM");
    return end;
  };
  atEnd(async () => {
    close();
    await stop();
  });
  return { socket, client, printed, signal, end, stop };
}

/** Connects to a plugin's socket. */
export function connectTo(socket: string) {
  const baseUrl = "http://localhost";
  const createConnection = () => net.connect({ path: socket });
  const sessionManager = new Http2SessionManager(baseUrl, {}, { createConnection });
  const transport = createGrpcTransport({ baseUrl, sessionManager });
  return { client: createClient(KeyManagementService, transport), close: () => sessionManager.abort() };
}
