/** `qsp top` against hostile servers. */
import { describe, it } from "vitest";
import { collectEnds, foreignPeers, selectPeers, silent } from "../../../test/faults/hostile-peer.ts";
import { requireSentence } from "../../../test/faults/hostile-server.ts";

describe("qsp top against a server that", { timeout: 300_000 }, () => {
  const atEnd = collectEnds();

  it.concurrent.each(selectPeers({ ...foreignPeers, ...silent }))(
    "%s, exits with one sentence",
    (_name, behaviour) =>
      requireSentence(["top", "--once", "--interval", "1"], { scheme: "http", behaviour, atEnd }),
  );
});
