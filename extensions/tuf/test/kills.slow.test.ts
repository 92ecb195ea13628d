/** Kills during publications: what clients read is always one complete publication. */
import { createHash } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { openConnections } from "../../../test/services/app-under-test.ts";
import { startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { openRepository } from "./tuf-server.ts";

const kills = 3;
const repository = "firmware";

/** A file that other metadata name. */
interface NamedFile {
  readonly version: number;
  readonly length: number;
  readonly hashes: { readonly sha256: string };
}

async function connect(dataDir: string) {
  const server = await startServer({ dataDir });
  const { grpc, disconnect } = openConnections(server.url);
  return {
    ...server,
    disconnect,
    tuf: createClient(RepositoryService, grpc),
    defi: createClient(DefiService, grpc),
  };
}

/** Reads all that a client reads, and compares lengths and hashes. */
async function readAll(url: string): Promise<{ version: number; targets: string[] }> {
  const base = `${url}/tuf/${repository}`;
  const read = async (path: string, named?: Omit<NamedFile, "version">): Promise<Uint8Array> => {
    const response = await fetch(`${base}/${path}`);
    expect(response.status, path).toBe(200);
    const content = await response.bytes();
    const found = { length: content.length, sha256: createHash("sha256").update(content).digest("hex") };
    if (named !== undefined) expect(found).toEqual({ length: named.length, sha256: named.hashes.sha256 });
    return content;
  };
  const readSigned = async (path: string, named?: NamedFile) =>
    JSON.parse(Buffer.from(await read(path, named)).toString()).signed;
  const nameOf = (role: string, { version }: NamedFile): string => `metadata/${version}.${role}.json`;
  const timestamp = await readSigned("metadata/timestamp.json");
  const named: NamedFile = timestamp.meta["snapshot.json"];
  const { meta } = await readSigned(nameOf("snapshot", named), named);
  const { targets } = await readSigned(nameOf("targets", meta["targets.json"]), meta["targets.json"]);
  const files: [string, Omit<NamedFile, "version">][] = Object.entries(targets);
  for (const [path, file] of files) await read(`targets/${file.hashes.sha256}.${path}`, file);
  return { version: timestamp.version, targets: Object.keys(targets) };
}

async function afterTurns(turns: number): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}

it(`after each of ${kills} kills, clients read one complete publication, and nothing answered is lost`, {
  timeout: 600_000,
}, async () => {
  const dataDir = makeTemporaryDirectory();
  let server = await connect(dataDir);
  await openRepository(server);
  let answered = 1;
  for (let kill = 0; kill < kills; kill++) {
    const { tuf } = server;
    let wanted = 3 + kill * 2;
    for (let upload = 0; ; upload++) {
      const path = `${kill}-${upload}.bin`;
      const one = async function* () {
        yield { repository, path, content: { data: Buffer.from(path) } };
      };
      await tuf.uploadTarget(one());
      const publishing = tuf.publish({ repository });
      // The last one is killed on its way, each time at another point.
      if (--wanted === 0) void afterTurns(kill * 3).then(() => server.process.kill("SIGKILL"));
      const version = await publishing.then(
        ({ repository: described }) => described?.roles.find(({ role }) => role === "timestamp")?.version,
        () => undefined,
      );
      if (version !== undefined) answered = version;
      if (wanted <= 0) break;
    }
    await server.exit;
    server.disconnect();
    server = await connect(dataDir);
    const read = await readAll(server.url);
    expect(read.version).toBeGreaterThanOrEqual(answered);
    answered = read.version;
    await server.tuf.publish({ repository });
    const { targets } = await readAll(server.url);
    expect(targets).toEqual(expect.arrayContaining(read.targets));
  }
  server.disconnect();
  await server.stop();
});
