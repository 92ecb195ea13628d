/** The real program with a client of its key service. */
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { AtEnd } from "../support/at-end.ts";
import { type RunningServer, type StartOptions, startServer } from "../support/start-server.ts";

/** A client of the key service, over gRPC. */
export type KmsClient = Client<typeof KmsService>;

/** A program that serves the key service. */
export interface KmsServer extends RunningServer {
  readonly kms: KmsClient;
}

/** Starts the program, and kills it at the end of the test if it still runs. */
export async function startKmsServer(
  options: StartOptions,
  atEnd: AtEnd = onTestFinished,
): Promise<KmsServer> {
  const server = await startServer(options);
  atEnd(async () => {
    await server.stop("SIGKILL");
  });
  const sessionManager = new Http2SessionManager(server.url);
  void server.exit.then(() => sessionManager.abort());
  const kms = createClient(KmsService, createGrpcTransport({ baseUrl: server.url, sessionManager }));
  return { ...server, kms };
}
