/** An HTTP/1.1 connection whose parser has failed while an earlier request is still being answered. */
import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { Clients } from "../../src/server/clients.ts";
import type { Exchange } from "../../src/server/exchange.ts";
import { createListener } from "../../src/server/listener.ts";
import { createUnreadResponses } from "../../src/server/unread-responses.ts";
import { connectTcp } from "./raw.ts";

/** More than Node buffers of a body that nobody reads (its high-water mark, 64 KiB). */
const body = Buffer.alloc(66_000, "b");

/** Serves exchanges that the test answers. */
async function start() {
  const arrived = Promise.withResolvers<Exchange>();
  const listener = createListener({
    ...{ maxMetadataBytes: 16_384, maxHeaderMs: 60_000, maxWriteMs: 60_000 },
    admitConnection: () => () => {},
    countAbandoned: () => true,
    unread: createUnreadResponses(60_000, () => {}, new Clients()),
    refuseBytes: () => ({ status: 400, headers: new Headers(), body: new Uint8Array() }),
    onFault: () => {},
    onPage: () => {},
    onExchange: (exchange) => arrived.resolve(exchange),
  });
  onTestFinished(() => listener.destroy());
  const { port } = await listener.listen(0, "127.0.0.1");
  return { port, arrived: arrived.promise };
}

it("notices a disconnect although node:http had stopped reading because of an unread body", async () => {
  const { port, arrived } = await start();
  const socket = connectTcp(port);
  socket.on("error", () => {});
  socket.write(`POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(Buffer.concat([body, Buffer.from("no request\r\n\r\n")]));
  const exchange = await arrived;
  const closed = new Promise<void>((resolve) => exchange.onClose(resolve));
  const pieces = (async function* () {
    yield Buffer.from("first");
    await closed;
  })();
  // The parser has seen all bytes once the peer has sent them and node:http has paused.
  await expect.poll(() => exchange.arrivedBytes()).toBe(body.length);
  void exchange.send({ status: 200, headers: new Headers(), body: pieces });
  await once(socket, "data");
  exchange.discard();
  socket.destroy();
  await closed;
});

it("gives a second reader the rest of a body that the first left early", async () => {
  const { port, arrived } = await start();
  const socket = connectTcp(port);
  socket.write(`POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(body.subarray(0, 10));
  const exchange = await arrived;
  let first = 0;
  for await (const piece of exchange.pieces()) {
    first = piece.length;
    break;
  }
  socket.write(body.subarray(10));
  const rest = await exchange.readAll(() => {}).promise;
  expect(first + rest.length).toBe(body.length);
});
