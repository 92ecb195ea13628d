/** Starts a whole server and reads its OpenAPI description. */
import { readConfig } from "../../src/config.ts";
import type { OpenApiDocument } from "../../src/openapi/document.ts";
import type { Route } from "../../src/transcoding/routes.ts";
import type { AtEnd } from "../support/at-end.ts";
import { addClient, describeClient, issuerUrl } from "../support/clients.ts";
import { loadFlags } from "../support/extension-tests.ts";
import { startApp } from "../support/start-app.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadSettings } from "../support/whole-program.ts";

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
  atEnd: AtEnd,
  more: readonly string[],
): Promise<readonly string[]> {
  const args = ["--issuer-url", issuerUrl, ...(await loadFlags(atEnd)), ...more];
  const config = readConfig(["--data-dir", dataDir, ...args], {}, await loadSettings());
  await addClient(config, describeClient("orders", { scopes: ["kms.sign"] }));
  return args;
}

/** Starts a server; with `afterAll` as an argument, it stops at the end of the file. */
export async function startApi(auth: "open" | "token", atEnd: AtEnd): Promise<ApiServer> {
  const dataDir = makeTemporaryDirectory(atEnd);
  const args = await prepareServer(dataDir, atEnd, ["--auth", auth]);
  const { url, server } = await startApp(atEnd, [...args, "--data-dir", dataDir]);
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument;
  return { url, document, routes: server.transcoder.routes };
}
