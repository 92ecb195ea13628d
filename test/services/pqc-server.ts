/** Runs the services of the package pqc on their own server, with a clock that the test sets. */
import { type Client, createClient, createServiceImplSpec } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { authenticate } from "../../src/identity/authenticate.ts";
import { createClientStore } from "../../src/identity/clients.ts";
import { openIssuer, rotateIssuerKey } from "../../src/identity/issuer.ts";
import { createIssuerStore } from "../../src/identity/issuer-store.ts";
import { logInAnyone } from "../../src/identity/log-in.ts";
import { createRevocations } from "../../src/identity/revocations.ts";
import { createDeviceOwners } from "../../src/services/iot/device-owners.ts";
import { pqcService } from "../../src/services/pqc/pqc-service.ts";
import { HandshakeRecorder } from "../../src/services/pqc/record-handshake.ts";
import { tokenService } from "../../src/services/pqc/token-service.ts";
import { serve } from "../server/serve.ts";
import { openTestStore } from "../support/open-store.ts";

/** Both services, with a client for each. */
export interface PqcServer {
  readonly pqc: Client<typeof PqcService>;
  readonly tokens: Client<typeof TokenService>;
  readonly provider: CryptoProvider;
  /** Does what `qsp issuer rotate` does. */
  rotateKey(): Promise<string>;
  close(): Promise<void>;
}

/** Starts both services on the store in a data directory. */
export async function startPqcServer(
  dataDir: string,
  now: () => Date = () => new Date(),
): Promise<PqcServer> {
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(dataDir, provider);
  const issuerParts = { provider, store: createIssuerStore(store), now };
  const issuer = await openIssuer(issuerParts);
  const accounts = {
    users: undefined,
    clients: createClientStore(store),
    revocations: createRevocations(store),
    findDeviceOwner: createDeviceOwners(store),
  };
  const handshakes = new HandshakeRecorder();
  const parts = { provider, handshakes, issuer, accounts, issuerUrl: undefined, logIn: logInAnyone(issuer) };
  const { server, url } = await serve(
    {
      services: [
        createServiceImplSpec<typeof PqcService>(PqcService, pqcService(parts)),
        createServiceImplSpec<typeof TokenService>(TokenService, tokenService(parts)),
      ],
      access: {
        mode: "open",
        authenticate: (authorization) => authenticate(issuer, accounts, authorization, undefined),
      },
    },
    // `close` stops it.
    () => {},
  );
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  return {
    pqc: createClient(PqcService, transport),
    tokens: createClient(TokenService, transport),
    provider,
    rotateKey: () => rotateIssuerKey(issuerParts, { revoke: false }),
    async close() {
      server.destroy();
      await server.close();
      await store.close();
      await provider.close();
    },
  };
}
