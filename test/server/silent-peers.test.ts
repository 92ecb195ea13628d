/** HTTP/2 peers that fall silent while a stream is open. */
import { once } from "node:events";
import type net from "node:net";
import { expect, it } from "vitest";
import {
  emptySettings,
  flags,
  frameTypes,
  opening,
  writeFields,
  writeFrame,
} from "../support/http2-frames.ts";
import { serveProbe } from "./probe.ts";
import { connectTcp, readToEnd } from "./raw.ts";

/** The first bytes of a PING request: length 8, type, no flags, stream 0. */
const ping = Buffer.from([0, 0, 8, frameTypes.ping, 0, 0, 0, 0, 0]);
/** GOAWAY with NO_ERROR: its sender opens no more streams. */
const goaway = writeFrame(frameTypes.goaway, 0, 0, Buffer.alloc(8));

/** Serves a stream that sends nothing until its caller disconnects. */
async function serveSilence() {
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const { port } = await serveProbe(
    {
      // biome-ignore lint/correctness/useYield: it sends nothing
      async *watch(_item, { signal }) {
        if (!signal.aborted) await once(signal, "abort");
        leave();
      },
    },
    { maxWriteMs: 200 },
  );
  return { port, left };
}

/** Opens the stream by hand, because a Node client would answer PING. */
function openStream(port: number): net.Socket {
  const fields = writeFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", "localhost"],
    [":path", "/probing.Probe/Watch"],
    ["content-type", "application/grpc"],
  ]);
  const socket = connectTcp(port);
  const headers = writeFrame(frameTypes.headers, flags.endHeaders, 1, fields);
  const message = writeFrame(frameTypes.data, flags.endStream, 1, Buffer.alloc(5));
  socket.write(Buffer.concat([opening, headers, message]));
  return socket;
}

it("a peer that does not answer PING loses its connection, and its call ends", async () => {
  const { port, left } = await serveSilence();
  const socket = openStream(port);
  const text = await readToEnd(socket);
  await left;
  expect(text).toContain(ping.toString("latin1"));
});

it("a peer that answers PING may send nothing else", async () => {
  const { port } = await serveSilence();
  const socket = openStream(port);
  let answered = 0;
  socket.on("data", (chunk: Buffer) => {
    const at = chunk.indexOf(ping);
    if (at < 0) return;
    answered += 1;
    socket.write(writeFrame(frameTypes.ping, flags.ack, 0, chunk.subarray(at + 9, at + 17)));
  });
  // The server pings every 200 ms, and checks for answers every second.
  await expect.poll(() => answered).toBeGreaterThanOrEqual(15);
  expect(socket.closed).toBe(false);
});

it("a peer that closes its connection is probed with SETTINGS, and may wait for its stream", async () => {
  const { port } = await serveSilence();
  const socket = openStream(port);
  socket.write(goaway);
  let answered = 0;
  socket.on("data", (chunk: Buffer) => {
    if (!chunk.includes(emptySettings)) return;
    answered += 1;
    socket.write(writeFrame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0)));
  });
  await expect.poll(() => answered).toBeGreaterThanOrEqual(15);
  expect(socket.closed).toBe(false);
});

it("a peer that closes, breaks the protocol and disconnects is noticed", async () => {
  const { port, left } = await serveSilence();
  const socket = openStream(port);
  const broken = writeFrame(frameTypes.data, 0, 0, Buffer.alloc(1));
  socket.write(Buffer.concat([goaway, broken]));
  await once(socket, "data");
  socket.resetAndDestroy();
  await left;
});
