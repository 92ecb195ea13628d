/** The real program with a client of its key service. */
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { AtEnd } from "../support/at-end.ts";
import { type RunningServer, type StartOptions, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

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

/** What happens between two starts of a program. */
interface Round {
  /** Uses the program until it is killed, and returns what cannot be true. */
  readonly use: (server: KmsServer, kill: number) => Promise<string[]>;
  /** Checks the store after the next start, and returns what cannot be true. */
  readonly judge: (kms: KmsClient) => Promise<string[]>;
}

/** Starts a program again and again, until a kill has caused a contradiction, and returns the contradictions. */
export async function killAgainAndAgain(
  kills: number,
  args: readonly string[],
  { use, judge }: Round,
): Promise<string[]> {
  const dataDir = makeTemporaryDirectory();
  let contradictions: string[] = [];
  let server = await startKmsServer({ dataDir, args });
  for (let kill = 1; kill <= kills && contradictions.length === 0; kill += 1) {
    contradictions = await use(server, kill);
    server = await startKmsServer({ dataDir, args });
    contradictions.push(...(await judge(server.kms)));
    if (contradictions.length > 0) contradictions.unshift(`after kill ${kill}:`);
  }
  await server.stop("SIGKILL");
  return contradictions;
}

/** Timeout in milliseconds of a test with this many kills. */
export const timeoutOf = (kills: number): number => 180_000 + kills * 45_000;
