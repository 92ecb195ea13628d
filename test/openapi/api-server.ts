/** Starts a whole server and reads its OpenAPI description. */
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { OpenApiDocument } from "../../src/openapi/document.ts";
import type { Route } from "../../src/transcoding/routes.ts";
import { addClient, describeClient, issuerUrl } from "../support/clients.ts";
import { loadFlags } from "../support/extension-tests.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages, loadSettings } from "../support/whole-program.ts";

/** A server with all services on SQLite, including extensions. */
export interface ApiServer {
  readonly url: string;
  readonly document: OpenApiDocument;
  /** The REST calls that it serves. */
  readonly routes: readonly Route[];
}

/**
 * Prepares a store for a server that answers all examples.
 *
 * @param more further flags
 * @returns the server flags besides --data-dir
 */
export async function prepareServer(
  dataDir: string,
  atEnd: (end: () => void | Promise<void>) => void,
  more: readonly string[],
): Promise<readonly string[]> {
  const args = ["--issuer-url", issuerUrl, ...(await loadFlags(atEnd)), ...more];
  const config = readConfig(["--data-dir", dataDir, ...args], {}, await loadSettings());
  await addClient(config, describeClient("orders", { scopes: ["kms.sign"] }));
  return args;
}

/** Starts a server; with `afterAll` as an argument, it stops at the end of the file. */
export async function startApi(
  auth: "open" | "token",
  atEnd: (end: () => void | Promise<void>) => void,
): Promise<ApiServer> {
  const dataDir = makeTemporaryDirectory(atEnd);
  const args = await prepareServer(dataDir, atEnd, ["--port", "0", "--auth", auth]);
  const config = readConfig(["--data-dir", dataDir, ...args], {}, await loadSettings());
  const { server, close } = await createApp(config, pino({ level: "silent" }), {
    packages: await loadPackages(),
  });
  atEnd(async () => {
    server.destroy();
    await close();
  });
  const { port } = await server.listen(config.port, config.host);
  const url = `http://${config.host}:${port}`;
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
  return { url, document, routes: server.transcoder.routes };
}
