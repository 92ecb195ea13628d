/** Starts the whole program in the process of the test. */
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { ServicePackage } from "../../src/services/registry.ts";
import type { AtEnd } from "./at-end.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";
import { loadPackages, loadSettings } from "./whole-program.ts";

/** Starts a server on a random port, by default with an empty store and all packages. */
export async function startApp(
  atEnd: AtEnd,
  args: readonly string[] = [],
  packages?: readonly ServicePackage[],
) {
  const defaults = ["--port", "0", "--data-dir", makeTemporaryDirectory(atEnd)];
  const config = readConfig([...defaults, ...args], {}, await loadSettings());
  const { server, close } = await createApp(config, pino({ level: "silent" }), {
    packages: packages ?? (await loadPackages()),
  });
  atEnd(async () => {
    server.destroy();
    await close();
  });
  const { port } = await server.listen(config.port, config.host);
  return { url: `http://${config.host}:${port}`, server };
}
