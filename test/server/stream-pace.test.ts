/** Streams whose messages cost their sender next to nothing, and the server a lot. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { serveProbe } from "./probe.ts";
import { connectHttp2, envelope, request } from "./raw.ts";

const sent = 1000;
const messages = (type: string): Buffer =>
  Buffer.concat(Array<Buffer>(sent).fill(envelope(type.endsWith("json") ? "{}" : "")));

describe.each([
  "application/grpc",
  "application/grpc+json",
  "application/grpc-web+proto",
  "application/connect+json",
])("a stream of 1,000 small messages of %s", (type) => {
  const open = async (answerBytes: number) => {
    let read = 0;
    const { url } = await serveProbe({
      async *chat(items) {
        for await (const _item of items) {
          read += 1;
          yield { data: new Uint8Array(answerBytes) };
        }
      },
    });
    const stream = connectHttp2(url).request({
      ":method": "POST",
      ":path": "/probing.Probe/Chat",
      "content-type": type,
    });
    stream.write(messages(type));
    return { url, stream, countRead: () => read };
  };

  it("leaves turns to other callers", async () => {
    const { url, stream, countRead } = await open(0);
    const other = connectHttp2(url);
    await once(stream, "response");
    expect((await request(other, { ":path": "/probe/look" })).status).toBe(200);
    expect(countRead()).toBeLessThan(sent);
    stream.resume();
    await expect.poll(countRead).toBe(sent);
  });

  it("is read no further than its answers are", async () => {
    const { url, stream, countRead } = await open(64 * 1024);
    await once(stream, "response");
    for (let calls = 0; calls < 50; calls += 1)
      expect((await request(connectHttp2(url), { ":path": "/probe/look" })).status).toBe(200);
    expect(countRead()).toBeLessThan(50);
    stream.resume();
    await expect.poll(countRead).toBe(sent);
  });
});
