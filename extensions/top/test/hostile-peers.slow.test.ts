/** `qsp top`, before servers that are not what it expects. */
import { describe, it } from "vitest";
import { collectEnds, silent, strangers } from "../../../test/faults/hostile-peer.ts";
import { requireSentence } from "../../../test/faults/hostile-server.ts";

describe("qsp top, before a peer that", { timeout: 300_000 }, () => {
  const atEnd = collectEnds();

  it.concurrent.each(Object.entries({ ...strangers, ...silent }))(
    "%s, ends with one sentence",
    (_name, behaviour) =>
      requireSentence(["top", "--once", "--interval", "1"], { scheme: "http", behaviour, atEnd }),
  );
});
