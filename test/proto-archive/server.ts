/** Starts a server with all services, and reads its protos. */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";

/** Runs a program to its end, and throws if it fails. The test's server keeps running meanwhile. */
export const execute = promisify(execFile);

/** A running server. */
export interface ProtoServer {
  readonly url: string;
  fetchBytes(path: string): Promise<Uint8Array<ArrayBuffer>>;
}

/** Starts a server; with `afterAll` as an argument, it stops at the end of the file. */
export async function startProtoServer(
  atEnd: (end: () => void | Promise<void>) => void,
  args: readonly string[] = [],
): Promise<ProtoServer> {
  const config = readConfig(["--port", "0", "--data-dir", makeTemporaryDirectory(atEnd), ...args], {});
  const { server, close } = await createApp(config, pino({ level: "silent" }), {
    packages: await loadPackages(),
  });
  atEnd(async () => {
    server.destroy();
    await close();
  });
  const { port } = await server.listen(config.port, config.host);
  const url = `http://${config.host}:${port}`;
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
