/** An RPC's codec returns known answer bytes, and leaves requests to the descriptor. */
import { expect, it } from "vitest";
import { Probe } from "../gen/probing/probe_pb.ts";
import { serveProbe } from "./probe.ts";

it.each([
  ["proto", "", 200],
  ["json", "{}", 200],
  ["json", "", 400],
  ["json", "none", 400],
])("an application/%s message, %j, is answered with %i", async (type, body, status) => {
  const knowsNothing = { write: () => undefined };
  const { url } = await serveProbe({}, {}, { codecs: new Map([[Probe.method.ask, knowsNothing]]) });
  const headers = { "content-type": `application/${type}` };
  expect((await fetch(`${url}/probing.Probe/Ask`, { method: "POST", headers, body })).status).toBe(status);
});
