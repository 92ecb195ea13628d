/** Starts a server with all services, and reads its protos. */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AtEnd } from "../support/at-end.ts";
import { startApp } from "../support/start-app.ts";

/** Runs a program to its end, and throws if it fails. The test's server keeps running meanwhile. */
export const execute = promisify(execFile);

/** A running server. */
export interface ProtoServer {
  readonly url: string;
  fetchBytes(path: string): Promise<Uint8Array<ArrayBuffer>>;
}

/** Starts a server; with `afterAll` as an argument, it stops at the end of the file. */
export async function startProtoServer(atEnd: AtEnd, args: readonly string[] = []): Promise<ProtoServer> {
  const { url } = await startApp(atEnd, args);
  return {
    url,
    fetchBytes: async (path) => new Uint8Array(await (await fetch(url + path)).arrayBuffer()),
  };
}

/** Extracts a server's archive with the system's tar. */
export async function extractProtos(server: ProtoServer, folder: string): Promise<string> {
  const archive = join(folder, "protos.tar.gz");
  const target = join(folder, "protos");
  await writeFile(archive, await server.fetchBytes("/protos.tar.gz"));
  await mkdir(target);
  await execute("tar", ["-xzf", archive, "-C", target]);
  return target;
}
