import { describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { runToEnd } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import {
  allPeers,
  type Behaviour,
  endlessPeers,
  foreignPeers,
  selectPeers,
  silent,
  startHostilePeer,
  waitUntilClosed,
} from "./hostile-peer.ts";
import { requireSentence } from "./hostile-server.ts";

const timeout = 300_000;
describe("a client verb whose peer", { timeout }, () => {
  const atEnd = endAfterAll();

  const fail = (args: readonly string[], scheme: string, behaviour: Behaviour) =>
    requireSentence(args, { scheme, behaviour, atEnd });

  it.concurrent.each(selectPeers(allPeers))("%s exits with one sentence", (_name, behaviour) =>
    fail(["kms", "list"], "http", behaviour),
  );

  it.concurrent.each(selectPeers({ ...foreignPeers, ...silent }))(
    "%s exits with one sentence over https",
    (_name, behaviour) => fail(["kms", "list"], "https", behaviour),
  );

  it.concurrent.each(selectPeers({ ...foreignPeers, ...endlessPeers }))(
    "%s ends its stream with one sentence",
    (_name, behaviour) => fail(["chain", "watch"], "http", behaviour),
  );
});

describe("a server whose database peer", { timeout }, () => {
  const atEnd = endAfterAll();

  it.concurrent.each(selectPeers({ ...foreignPeers, ...silent }))(
    "%s does not start, and reports why",
    async (_name, behaviour) => {
      const peer = await startHostilePeer(behaviour, atEnd);
      const url = `postgres://u@127.0.0.1:${peer.port}/qsp`;
      const dataDir = makeTemporaryDirectory(atEnd);
      const exit = await runToEnd(["serve", "--port", "0", "--data-dir", dataDir, "--database-url", url]);
      expect(exit.stderr).toMatch(/^qsp: [^\n]+\n$/);
      expect([2, 4]).toContain(exit.code);
      await waitUntilClosed(peer);
    },
  );
});
