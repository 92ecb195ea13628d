/** The plugin against hostile key services. */
import { beforeAll, describe, expect, it } from "vitest";
import {
  allPeers,
  collectEnds,
  type HostilePeer,
  maxTakenBytes,
  selectPeers,
  startHostilePeer,
} from "../../../test/faults/hostile-peer.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { makeSocketPath, type RunningPlugin, startPlugin } from "./start-plugin.ts";

const timeout = 300_000;

describe("the plugin against a peer that", { timeout }, () => {
  const atEnd = collectEnds();
  let peer: HostilePeer;
  let plugin: RunningPlugin;
  beforeAll(async () => {
    peer = await startHostilePeer(() => {}, atEnd);
    const args = ["--timeout", "2"];
    const socket = makeSocketPath(atEnd);
    plugin = await startPlugin({ url: `http://127.0.0.1:${peer.port}`, args, socket }, atEnd);
  }, timeout);

  it.each(selectPeers(allPeers))("%s, reports the key service as unavailable", async (_name, behaviour) => {
    peer.become(behaviour);
    for (const socket of peer.open) socket.destroy();
    const earlierBytes = peer.sentBytes();
    expect((await plugin.client.status({})).healthz).not.toBe("ok");
    expect(await refusal(plugin.client.encrypt({ plaintext: Buffer.from("x") }))).toEqual({
      code: "Unavailable",
      reason: "KEY_SERVICE_UNAVAILABLE",
    });
    expect(peer.sentBytes() - earlierBytes).toBeLessThan(maxTakenBytes);
  });
});
