/**
 * A package registry on loopback that serves the content of node_modules, and nothing else. npm installs from it like
 * from any registry, so install tests need neither a network nor a warm cache.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** A running registry. */
export type PackageRegistry = Awaited<ReturnType<typeof startRegistry>>;

/** Starts a registry with the transitive dependencies of a package. */
export async function startRegistry(packageJson: Manifest) {
  const manifests = collectManifests(packageJson);
  const fetched = new Set<string>();
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://registry").pathname).slice(1);
    const isContent = path.endsWith("/-/content.tar");
    const name = path.replace(/\/-\/content\.tar$/, "");
    const manifest = manifests.get(name);
    if (manifest === undefined) return void response.writeHead(404).end("{}");
    if (isContent) {
      fetched.add(name);
      return sendContent(name, response);
    }
    const dist = { tarball: `http://${request.headers.host}/${name}/-/content.tar` };
    const versions = { [manifest.version]: { ...manifest, name, dist } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name, "dist-tags": { latest: manifest.version }, versions }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    /** Names of the packages whose content was fetched. */
    fetched: fetched as ReadonlySet<string>,
    close: (): void => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function collectManifests(packageJson: Manifest): Map<string, Manifest> {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const found = new Map<string, Manifest>();
  const add = ({ dependencies, optionalDependencies }: Manifest): void => {
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      if (found.has(name)) continue;
      const path = join(root, "node_modules", name, "package.json");
      // Packages for other platforms are missing here, and npm must see that it need not fetch them.
      const manifest = existsSync(path)
        ? JSON.parse(readFileSync(path, "utf8"))
        : packages[`node_modules/${name}`];
      found.set(name, manifest);
      add(manifest);
    }
  };
  add(packageJson);
  return found;
}

/** Sends the files of a package, without C headers and manuals, which are most of Node's files. */
function sendContent(name: string, response: ServerResponse): void {
  const flags = ["--exclude=./include", "--exclude=./share", "--exclude=./node_modules"];
  const tar = spawn("tar", ["-cf", "-", ...flags, "--transform=s,^\\.,package,", "."], {
    cwd: join(root, "node_modules", name),
    stdio: ["ignore", "pipe", "inherit"],
  });
  tar.stdout.pipe(response);
}
