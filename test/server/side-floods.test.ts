import { expect, it } from "vitest";
import { serveProbe } from "./probe.ts";
import { connectHttp2, request } from "./raw.ts";

const floods = {
  "paths that do not exist": { ":path": "/nope" },
  "methods that a path does not take": { ":path": "/livez", ":method": "DELETE" },
  "RPCs that do not exist": { ":path": "/a.b/C", ":method": "POST", "content-type": "application/grpc" },
  "requests of other sites": { ":path": "/probe/look", origin: "http://evil.example" },
  pages: { ":path": "/livez" },
};

it.each(Object.entries(floods))("do not delay a call that arrives after them: %s", async (_what, head) => {
  const { url } = await serveProbe({ look: () => ({}) });
  const session = connectHttp2(url);
  const order: string[] = [];
  // All in one segment. Without pacing, they would be answered in order.
  const flood = Array.from({ length: 300 }, () => request(session, head).then(() => order.push("flood")));
  const call = request(session, { ":path": "/probe/look" }).then(({ headers }) => {
    expect(headers[":status"]).toBe(200);
    order.push("call");
  });
  await Promise.all([...flood, call]);
  expect(order.indexOf("call")).toBeLessThan(150);
});
