/** Callers who disconnect while their token is checked: no call starts that nothing would end. */
import { once } from "node:events";
import http2 from "node:http2";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ada, headOf, makeWatches, serveAdmitting } from "./probe.ts";
import { connectHttp2, connectTcp, envelope, readStream } from "./raw.ts";

/** Serves watches. The test decides when a token has been checked. */
async function startWatched() {
  const checking = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const { behaviour, ...watches } = makeWatches();
  /** How often the server checked whether stream callers still have access. */
  let checks = 0;
  const check = async (): Promise<void> => {
    checks += 1;
  };
  const { port, url } = await serveAdmitting(behaviour, async (authorization) => {
    if (authorization === "slowly") {
      checking.resolve();
      await release.promise;
    }
    return { ...ada, revocation: { group: "ada", check } };
  });
  return {
    ...{ port, url, ...watches, checking: checking.promise, release: release.resolve },
    /** With nobody to watch, the server does not poll: in two poll intervals, it checks nothing. */
    async expectNobodyWatched() {
      const before = checks;
      await setTimeout(1200);
      expect(checks).toBe(before);
    },
  };
}

type Head = Readonly<Record<string, string>>;
const types = ["application/grpc", "application/connect+proto", "application/grpc-web+proto"] as const;
const rpcs = types.map((type): [string, Head] => [type, headOf("Watch", type)]);
const forms: [string, Head][] = [["REST", { ":method": "GET", ":path": "/probe/watch" }], ...rpcs];

function open(session: http2.ClientHttp2Session, head: Head, extra: Head = {}): http2.ClientHttp2Stream {
  const stream = session.request({ ...head, ...extra }, { endStream: false });
  stream.on("error", () => {});
  return stream.end(head[":method"] === "POST" ? envelope("") : undefined);
}

/** Expects that a later call is the only one running, and that the server watches no caller once it has ended. */
async function expectOnlyLater(watched: Awaited<ReturnType<typeof startWatched>>): Promise<void> {
  const later = open(connectHttp2(watched.url), headOf("Watch"));
  await expect.poll(() => watched.begun.filter(({ aborted }) => !aborted)).toHaveLength(1);
  await expect.poll(watched.countRunning).toBe(1);
  later.close(http2.constants.NGHTTP2_CANCEL);
  await expect.poll(watched.countRunning).toBe(0);
  await watched.expectNobodyWatched();
}

describe("a caller who disconnects while the token is checked", () => {
  it.each(forms)("leaves no call behind over HTTP/2: %s", async (_form, head) => {
    const watched = await startWatched();
    const session = connectHttp2(watched.url);
    const stream = open(session, head, { authorization: "slowly" });
    await watched.checking;
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await once(stream, "close");
    // Once it has answered a later ping on the same connection, the server has read the reset.
    await new Promise<void>((resolve) => void session.ping(() => resolve()));
    watched.release();
    await expectOnlyLater(watched);
  });

  const formsOver1 = forms.filter(([name]) => name !== "application/grpc");
  it.each(formsOver1)("leaves no call behind over HTTP/1.1: %s", async (_form, head) => {
    const { ":method": method, ":path": path, "content-type": type } = head;
    const watched = await startWatched();
    const socket = connectTcp(watched.port);
    const body = type === undefined ? "" : "\0".repeat(5);
    const fields = ["host: localhost", "authorization: slowly", `content-length: ${body.length}`];
    if (type !== undefined) fields.push(`content-type: ${type}`);
    socket.write(`${method} ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
    await watched.checking;
    socket.resetAndDestroy();
    // A later connection has been served, so the server has seen the end of the earlier one.
    await (await fetch(`${watched.url}/livez`)).text();
    watched.release();
    await expectOnlyLater(watched);
  });
});

describe("a stream whose deadline has passed before it begins", () => {
  it.each(rpcs)("leaves nobody to watch: %s", async (_type, head) => {
    const watched = await startWatched();
    const past = { "grpc-timeout": "0m", "connect-timeout-ms": "0" };
    const { headers, trailers, body } = await readStream(open(connectHttp2(watched.url), head, past));
    expect(`${headers["grpc-status"]} ${trailers["grpc-status"]} ${body}`).toMatch(/\b4\b|deadline_exceeded/);
    expect(watched.countRunning()).toBe(0);
    await watched.expectNobodyWatched();
  });
});
