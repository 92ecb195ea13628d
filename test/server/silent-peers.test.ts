/** HTTP/2 peers that fall silent while a stream is open. */
import { once } from "node:events";
import { expect, it } from "vitest";
import { flags, frameTypes, opening, writeFrame } from "../support/http2-frames.ts";
import { createFrameDecoder, encodeCall } from "./frames.ts";
import { makeWatches, serveProbe } from "./probe.ts";
import { connectTcp, readToEnd } from "./raw.ts";

/** The first bytes of a PING request: length 8, type, no flags, stream 0. */
const ping = Buffer.from([0, 0, 8, frameTypes.ping, 0, 0, 0, 0, 0]);
/** GOAWAY with NO_ERROR: its sender opens no more streams. */
const goaway = writeFrame(frameTypes.goaway, 0, 0, Buffer.alloc(8));

/** Opens a watch by hand, because a Node client would answer PING. */
async function openWatch() {
  const { behaviour, ...watches } = makeWatches();
  const { port } = await serveProbe(behaviour, { maxWriteMs: 200 });
  const socket = connectTcp(port);
  socket.write(Buffer.concat([opening, encodeCall(1, "/probing.Probe/Watch", Buffer.alloc(0))]));
  await expect.poll(watches.countRunning).toBe(1);
  return { socket, ...watches };
}

it("a peer that does not answer PING loses its connection, and its call ends", async () => {
  const { socket, countRunning } = await openWatch();
  const text = await readToEnd(socket);
  await expect.poll(countRunning).toBe(0);
  expect(text).toContain(ping.toString("latin1"));
});

it.each([
  { what: "answers PING", type: frameTypes.ping, first: [] },
  { what: "closes its connection, and answers SETTINGS,", type: frameTypes.settings, first: [goaway] },
])("a peer that $what may send nothing else", async ({ type, first }) => {
  const { socket } = await openWatch();
  for (const bytes of first) socket.write(bytes);
  const decode = createFrameDecoder();
  let answered = 0;
  socket.on("data", (chunk: Buffer) => {
    const [probe] = decode(chunk).filter((frame) => frame.type === type && frame.flags === 0);
    if (probe === undefined) return;
    answered += 1;
    const payload = type === frameTypes.ping ? probe.payload : Buffer.alloc(0);
    socket.write(writeFrame(type, flags.ack, 0, payload));
  });
  // The server probes every 200 ms, and checks for answers every second.
  await expect.poll(() => answered).toBeGreaterThanOrEqual(15);
  expect(socket.closed).toBe(false);
});

it("a peer that closes, breaks the protocol and disconnects is noticed", async () => {
  const { socket, countRunning } = await openWatch();
  const broken = writeFrame(frameTypes.data, 0, 0, Buffer.alloc(1));
  socket.write(Buffer.concat([goaway, broken]));
  await once(socket, "data");
  socket.resetAndDestroy();
  await expect.poll(countRunning).toBe(0);
});
