/** Small requests that expand, nest or repeat. The server answers them briefly, and keeps answering other callers. */
import { beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { listBombs, sendBomb } from "./bombs.ts";

const maxWireBytes = 64 * 1024;
/** Maximum length of an error: it quotes little of its request. */
const maxAnswerBytes = 16 * 1024;

describe("a request of at most 64 KB", () => {
  const atEnd = endAfterAll();
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({ dataDir: makeTemporaryDirectory(atEnd) });
    atEnd(async () => void (await server.stop("SIGKILL")));
  });

  it.each(listBombs())("%s", async (_name, bomb) => {
    expect(bomb.path.length + (bomb.body?.length ?? 0)).toBeLessThan(maxWireBytes);
    const [answer, alive] = await Promise.all([sendBomb(server.url, bomb), fetch(`${server.url}/livez`)]);
    expect(alive.status).toBe(200);
    expect(answer.body.length).toBeLessThan(maxAnswerBytes);
    expect(JSON.stringify([answer.headers, answer.trailers]).length).toBeLessThan(maxAnswerBytes);
  });
});
