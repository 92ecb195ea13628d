/** The whole server, and the description that it gives of itself. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import type { OpenApiDocument } from "../../src/openapi/document.ts";
import type { NoteSigner } from "../../src/signed-notes/sign.ts";
import { formatVerifierKey } from "../../src/signed-notes/verifier-keys.ts";
import type { Route } from "../../src/transcoding/routes.ts";
import { addClient, describeClient, issuerUrl } from "../support/clients.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { makeEd25519Witness } from "../support/witness.ts";

/** A server with all services on SQLite, those of extensions among them. */
export interface ApiServer {
  readonly url: string;
  readonly document: OpenApiDocument;
  /** A witness that it trusts. */
  readonly witness: NoteSigner;
  /** The REST calls that it serves. */
  readonly routes: readonly Route[];
}

/** Starts a server; in `beforeAll` it ends with the file, given `afterAll`. */
export async function startApi(
  auth: "open" | "token",
  atEnd: (end: () => void | Promise<void>) => void,
): Promise<ApiServer> {
  const dataDir = makeTemporaryDirectory(atEnd);
  const witness = makeEd25519Witness("witness.example.com");
  const witnesses = join(dataDir, "witnesses");
  writeFileSync(witnesses, `${formatVerifierKey(witness.key)}\n`);
  const config = readConfig(
    [
      ...["--port", "0", "--auth", auth, "--data-dir", dataDir, "--issuer-url", issuerUrl],
      ...["--audit-log-public", "--witnesses", witnesses],
    ],
    {},
  );
  await addClient(config, describeClient("orders", { scopes: ["kms.sign"] }));
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
  return { url, document, witness, routes: server.transcoder.routes };
}
