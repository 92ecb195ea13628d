import { once } from "node:events";
import http from "node:http";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { connectProbe, protocols, serveProbe } from "./probe.ts";
import { connectHttp2, connectTcp, jsonRefusalOf, readToEnd } from "./raw.ts";

const maxBytes = 4 * 1024 * 1024;
/** Bytes of a message besides its data: tags and lengths, or JSON. */
const roomBytes = 64;

const atEnd = endAfterAll();
let url: string;
beforeAll(async () => {
  ({ url } = await serveProbe({ ask: ({ data }) => ({ number: BigInt(data.length) }) }, {}, { atEnd }));
});

// message-limits.test.ts and refusals.test.ts test the limit of each message.
it.each(protocols)("messages of a stream may exceed the limit together, over %s", async (protocol) => {
  const million = { text: "x".repeat(1024 * 1024) };
  const { url } = await serveProbe({}, { maxMessageBytes: 1_100_000 });
  const { text } = await connectProbe(protocol, url).collect(stream(million, million, { text: "end" }));
  expect(text).toHaveLength(2 * 1024 * 1024 + 3);
});

describe.each([
  ["REST", "/probe/ask", "application/json"],
  ["Connect", "/probing.Probe/Ask", "application/proto"],
  ["gRPC", "/probing.Probe/Ask", "application/grpc"],
])("an HTTP/2 stream with a refused body of 8 MiB, by %s,", (_name, path, type) => {
  it("does not stay open: the server reads the rest or resets it", async () => {
    const stream = connectHttp2(url).request({ ":method": "POST", ":path": path, "content-type": type });
    stream.end(Buffer.alloc(2 * maxBytes, "x"));
    stream.resume();
    await once(stream, "close");
    expect(stream.rstCode).toBe(0);
  });
});

describe("an HTTP/1.1 connection whose request was refused half read", () => {
  it.each(["/probe/ask", "/probing.Probe/Ask"])("accepts the next request, after %s", async (path) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const post = (bytes: number): Promise<{ status: number; port: number }> =>
      new Promise((resolve, reject) => {
        const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
        const sent = http.request(`${url}${path}`, { method: "POST", agent, headers }, (answer) => {
          const port = answer.socket.localPort ?? 0;
          answer.on("end", () => resolve({ status: answer.statusCode ?? 0, port })).resume();
        });
        sent.on("error", reject);
        sent.end(JSON.stringify({ data: "A".repeat(bytes) }));
      });
    const refused = await post(5 * 1024 * 1024);
    const next = await post(4);
    expect([refused.status >= 400, next.status]).toEqual([true, 200]);
    expect(next.port).toBe(refused.port);
  });
});

describe("an HTTP/1.1 client that closes after its request was refused half read", () => {
  const body = Buffer.from(`{"text":"${"x".repeat(20_000_000)}"}`);
  const length = `content-length: ${body.length}`;
  const heads: [what: string, head: string][] = [
    ["by Connection: close", `POST /probe/ask HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${length}`],
    ["by HTTP/1.0", `POST /probe/ask HTTP/1.0\r\nhost: x\r\n${length}`],
    ["for an RPC path", `POST /probing.Probe/Ask HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${length}`],
    ["for an unknown path", `POST /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${length}`],
  ];
  it.each(heads)("reads its answer after sending everything: %s", async (_what, head) => {
    const socket = connectTcp(Number(new URL(url).port));
    const failed = vi.fn();
    socket.on("error", failed);
    socket.write(`${head}\r\ncontent-type: application/json\r\n\r\n`);
    await new Promise((resolve) => socket.write(body, resolve));
    const answer = await readToEnd(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ message: expect.any(String) });
    expect(failed).not.toHaveBeenCalled();
  });

  const python = isMissing("python3") ? "of Python (python3 is not installed)" : "of Python";
  it.skipIf(isMissing("python3"))(`reads its answer if it is ${python}`, async () => {
    const program = [
      "import http.client, sys, urllib.error, urllib.request",
      "body = sys.stdin.buffer.read()",
      "headers = {'content-type': 'application/json', 'connection': 'close'}",
      "for _ in range(3):",
      "    connection = http.client.HTTPConnection(sys.argv[1])",
      "    connection.request('POST', '/probe/ask', body, headers)",
      "    print(connection.getresponse().status)",
      "    try: urllib.request.urlopen(urllib.request.Request('http://' + sys.argv[1] + '/probe/ask', body, headers))",
      "    except urllib.error.HTTPError as error: print(error.code)",
    ].join("\n");
    const { stdout, stderr } = await run("python3", ["-c", program, new URL(url).host], body.toString());
    expect([stdout.trim().split("\n"), stderr]).toEqual([Array(6).fill("413"), ""]);
  });

  it("sees the connection end at its answer, and can take its time to close its own half", async () => {
    const socket = connectTcp(Number(new URL(url).port), true);
    socket.write(`${heads[0]?.[1]}\r\ncontent-type: application/json\r\n\r\n`);
    socket.write(body.subarray(0, maxBytes + roomBytes));
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    await once(socket, "end");
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    await new Promise((resolve) => socket.end(body.subarray(maxBytes + roomBytes), () => resolve(undefined)));
    expect(await once(socket, "close")).toEqual([false]);
  });

  it("is dropped if it sends nothing more and does not close", async () => {
    const { port, server } = await serveProbe({}, { maxDrainMs: 600_000 });
    const socket = connectTcp(port, true);
    socket.write(`${heads[0]?.[1]}\r\ncontent-type: application/json\r\n\r\n`);
    socket.write(body.subarray(0, maxBytes + roomBytes));
    socket.resume();
    await once(socket, "end");
    // Ends when all connections are closed.
    await server.close();
  });
});

describe("a small message that expands to more than 4 MiB", () => {
  it("is refused in a Connect GET", async () => {
    const small = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    const query = `connect=v1&encoding=proto&compression=gzip&base64=1&message=${small.toString("base64url")}`;
    const answer = await fetch(`${url}/probing.Probe/Look?${query}`);
    expect(jsonRefusalOf(await answer.text())).toEqual({
      code: "resource_exhausted",
      reason: "BODY_TOO_LARGE",
    });
  });
});

describe("the message in a target", () => {
  const limit = 1024;
  // Neither is valid, so an error about its content would show that it had been decoded.
  const rows: [what: string, query: (length: number) => string, longest: number, reason: string][] = [
    [
      "in a Connect GET",
      (length) => `/probing.Probe/Look?connect=v1&encoding=json&message=${"x".repeat(length)}`,
      limit,
      "JSON_INVALID",
    ],
    [
      "in a base64 Connect GET",
      (length) => `/probing.Probe/Look?connect=v1&encoding=proto&base64=1&message=${"!".repeat(length)}`,
      Math.ceil(limit / 3) * 4,
      "MESSAGE_MALFORMED",
    ],
    ["of REST", (length) => `/probe/look?${"%".repeat(length)}`, limit, "TARGET_INVALID"],
  ];
  it.each(rows)(
    "%s is subject to the limit of its call before it is decoded",
    async (_what, query, longest, reason) => {
      const { url } = await serveProbe({}, { maxMessageBytes: limit });
      const reasonOf = async (length: number) =>
        jsonRefusalOf(await (await fetch(`${url}${query(length)}`)).text()).reason;
      expect(await reasonOf(longest)).toBe(reason);
      expect(await reasonOf(longest + 1)).toBe("BODY_TOO_LARGE");
    },
  );
});

async function* stream<T>(...items: T[]) {
  yield* items;
}
