/** Clients that call without a pause, and record which calls they had sent when the server began to stop. */
import net from "node:net";
import { onTestFinished } from "vitest";
import { decodeFrames, encodeCall } from "../server/frames.ts";
import { frameTypes, opening, writeFrame } from "../support/http2-frames.ts";

/** The calls of one client. */
export interface LoadClient {
  /** Stops sending. Calls whose last byte the system has accepted count as sent. */
  stop(): void;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;
  /** Calls with a complete answer. */
  readonly answered: () => number;
  /** Sent calls without an answer. Once the connection has closed, these calls are lost. */
  readonly unanswered: () => number;
}

/** Connects, and calls back when the connection is open. */
function open(port: number, onBytes: (bytes: Buffer) => void) {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.on("data", onBytes);
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  return { socket, closed };
}

/** Sends requests over HTTP/1.1 on one connection; more than one in flight makes a pipeline. */
export function loadHttp1(port: number, requests: readonly string[], depth: number): LoadClient {
  let isStopped = false;
  let begun = 0;
  let sent = 0;
  let answered = 0;
  let sentAtStop = 0;
  let rest = "";
  const { socket, closed } = open(port, (bytes) => {
    rest += bytes.toString("latin1");
    for (let end = endOfAnswer(rest); end !== undefined; end = endOfAnswer(rest)) {
      rest = rest.slice(end);
      answered += 1;
    }
    fill();
  });
  const fill = (): void => {
    while (!isStopped && socket.writable && begun - answered < depth) {
      socket.write(requests[begun % requests.length] ?? "", (error) => {
        if (!error) sent += 1;
      });
      begun += 1;
    }
  };
  socket.once("connect", fill);
  return {
    stop: () => {
      isStopped = true;
      sentAtStop = sent;
    },
    closed,
    answered: () => answered,
    unanswered: () => Math.max(0, sentAtStop - answered),
  };
}

/** Returns the length of the answer at the start of a text; undefined if the answer is incomplete. */
function endOfAnswer(text: string): number | undefined {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return undefined;
  const [, length = "0"] = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, head)) ?? [];
  const end = head + 4 + Number(length);
  return text.length < end ? undefined : end;
}

/** Makes gRPC calls as raw frames, a fixed number at a time, until GOAWAY or the stop. */
export function loadHttp2(
  port: number,
  calls: readonly { readonly path: string; readonly message: Uint8Array }[],
  depth: number,
): LoadClient {
  let isStopped = false;
  let nextStream = 1;
  let rest = Buffer.alloc(0);
  let answered = 0;
  const running = new Set<number>();
  const sent = new Set<number>();
  let sentAtStop = new Set<number>();
  const { socket, closed } = open(port, (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (const { type, flags, streamId, payload } of decodeFrames(rest)) {
      rest = rest.subarray(9 + payload.length);
      const isFlagged = (flags & 1) === 1;
      if (type === frameTypes.ping && !isFlagged) socket.write(writeFrame(type, 1, 0, payload));
      if (type === frameTypes.goaway) isStopped = true;
      if (type !== frameTypes.headers || !isFlagged) continue;
      answered += 1;
      running.delete(streamId);
      sentAtStop.delete(streamId);
    }
    fill();
  });
  const fill = (): void => {
    while (!isStopped && socket.writable && running.size < depth) {
      const streamId = nextStream;
      const { path, message } = calls[(streamId >> 1) % calls.length] ?? {
        path: "/",
        message: Buffer.alloc(0),
      };
      nextStream += 2;
      running.add(streamId);
      socket.write(encodeCall(streamId, path, message), (error) => {
        if (!error) sent.add(streamId);
      });
    }
  };
  // A window large enough for all answers.
  socket.write(
    Buffer.concat([opening, writeFrame(frameTypes.windowUpdate, 0, 0, Buffer.from([0x3f, 0, 0, 0]))]),
  );
  socket.once("connect", fill);
  return {
    stop: () => {
      isStopped = true;
      sentAtStop = new Set([...running].filter((streamId) => sent.has(streamId)));
    },
    closed,
    answered: () => answered,
    unanswered: () => sentAtStop.size,
  };
}
