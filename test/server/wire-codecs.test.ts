/** The faster codec of an RPC reads its Protobuf messages, and no others. */
import { create } from "@bufbuild/protobuf";
import { createServiceImplSpec } from "@connectrpc/connect";
import { expect, it, onTestFinished } from "vitest";
import { ItemSchema, Probe } from "../gen/probing/probe_pb.ts";
import { serve } from "./serve.ts";

it.each([
  ["proto", "", 200],
  ["json", "{}", 200],
  ["json", "", 400],
  ["json", "none", 400],
])("a message of application/%s, %j, is answered with %i", async (type, body, status) => {
  const readAny = { read: () => create(ItemSchema), write: () => undefined };
  const { server, url } = await serve({
    services: [createServiceImplSpec<typeof Probe>(Probe, { ask: (item) => item })],
    codecs: new Map([[Probe.method.ask, readAny]]),
  });
  onTestFinished(() => server.destroy());
  const headers = { "content-type": `application/${type}` };
  expect((await fetch(`${url}/probing.Probe/Ask`, { method: "POST", headers, body })).status).toBe(status);
});
