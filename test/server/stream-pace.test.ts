/** Streams whose messages cost their sender next to nothing, and the server a lot. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { headOf, serveProbe } from "./probe.ts";
import { connectHttp2, envelope, request } from "./raw.ts";

const messages = (type: string, count: number): Buffer =>
  Buffer.concat(Array<Buffer>(count).fill(envelope(type.endsWith("json") ? "{}" : "")));

describe.each([
  "application/grpc",
  "application/grpc+json",
  "application/grpc-web+proto",
  "application/connect+json",
])("a stream of many small messages of %s", (type) => {
  const open = async (sent: number, answerBytes: number) => {
    let read = 0;
    const { url } = await serveProbe({
      async *chat(items) {
        for await (const _item of items) {
          read += 1;
          yield { data: new Uint8Array(answerBytes) };
        }
      },
    });
    const stream = connectHttp2(url).request(headOf("Chat", type));
    stream.write(messages(type, sent));
    return { url, stream, countRead: () => read };
  };

  it("leaves turns to other callers", async () => {
    const sent = 1000;
    const { url, stream, countRead } = await open(sent, 0);
    const other = connectHttp2(url);
    await once(stream, "response");
    expect((await request(other, { ":path": "/probe/look" })).status).toBe(200);
    expect(countRead()).toBeLessThan(sent);
    stream.resume();
    await expect.poll(countRead).toBe(sent);
  });

  it("is read no further than its answers are", async () => {
    const sent = 200;
    const { url, stream, countRead } = await open(sent, 64 * 1024);
    await once(stream, "response");
    const other = connectHttp2(url);
    for (let calls = 0; calls < 50; calls += 1)
      expect((await request(other, { ":path": "/probe/look" })).status).toBe(200);
    expect(countRead()).toBeLessThan(50);
    stream.resume();
    await expect.poll(countRead).toBe(sent);
  });
});
