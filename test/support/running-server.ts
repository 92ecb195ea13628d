import { afterAll, beforeAll } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

/** Runs the program with a new store for the tests of the calling block. */
export function useRunningServer(args: readonly string[] = []): () => RunningServer {
  const dataDir = makeTemporaryDirectory(afterAll);
  let server: RunningServer | undefined;
  beforeAll(async () => {
    server = await startServer({ dataDir, args });
  }, 180_000);
  afterAll(() => server?.stop());
  return () => {
    if (server === undefined) throw new Error("the server has not started");
    return server;
  };
}
