/** Cross-origin calls through Envoy, from a page in a real browser. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { openBrowser } from "../../console/test/browser.ts";
import { endAfterAll } from "../support/at-end.ts";
import { describeEdge, startBackend, startTestEdge, type TestEdge } from "./edge-tools.ts";

/** A call from a page; the answer must contain a text, decoded from base64 in text mode. */
interface PageCall {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** One character per byte. */
  readonly body?: string;
  /** 200 by default. */
  readonly status?: number;
  readonly contains: string;
}

/** An empty message in an envelope. */
const empty = "\0\0\0\0\0";
/** WatchAuditLog from the first entry on: `after_sequence`, a double in field 2, is 0. */
const fromFirst = `\0\0\0\0\x09\x11${"\0".repeat(8)}`;
const json = { "content-type": "application/json" };
const connect = { ...json, "connect-protocol-version": "1" };
const web = { "x-grpc-web": "1", "x-user-agent": "grpc-web-javascript/0.1", "grpc-timeout": "60S" };
const grpcWeb = { "content-type": "application/grpc-web+proto", ...web };
const textType = "application/grpc-web-text";
const grpcWebText = { "content-type": textType, accept: textType, ...web };

const algorithms = { path: "/pqc.PqcService/GetAlgorithmInfo", contains: "ML-DSA-65" };
const watch = { path: "/kms.KmsService/WatchAuditLog", contains: "CREATE" };
const rest = { ...algorithms, path: "/api/grpc/algorithms" };
const sign = { path: "/api/grpc/sign", headers: json, body: '{"data":"aGVsbG8="}', contains: "signature" };
const query = { method: "QUERY", path: "/api/grpc/verify", headers: json, body: "{}" };

const calls: readonly PageCall[] = [
  { name: "REST", ...rest },
  { name: "REST with a token", ...rest, headers: { authorization: "Bearer x" } },
  { name: "REST with a body", ...sign },
  { name: "REST by QUERY", ...query, status: 400, contains: "FIELD_INVALID" },
  { name: "Connect", ...algorithms, headers: connect, body: "{}" },
  { name: "gRPC-Web", ...algorithms, headers: grpcWeb, body: empty },
  { name: "gRPC-Web in text mode", ...algorithms, headers: grpcWebText, body: btoa(empty) },
  { name: "a stream of gRPC-Web", ...watch, headers: grpcWeb, body: fromFirst },
  { name: "a stream of gRPC-Web in text mode", ...watch, headers: grpcWebText, body: btoa(fromFirst) },
  {
    name: "a refusal of gRPC-Web",
    path: "/kms.KmsService/None",
    headers: grpcWeb,
    body: empty,
    contains: "",
  },
];

describeEdge("a page with a different origin, through Envoy", () => {
  const atEnd = endAfterAll();
  let edge: TestEdge;
  let listed: Page;
  let unlisted: Page;
  beforeAll(async () => {
    const pages = http.createServer((_req, res) => {
      res.setHeader("content-type", "text/html").end("<!doctype html><title>a page</title>");
    });
    pages.listen(0, "127.0.0.1");
    await once(pages, "listening");
    atEnd(() => void pages.close());
    const { port } = pages.address() as AddressInfo;
    const origin = `http://127.0.0.1:${port}`;
    const server = await startBackend(atEnd, ["--cors-origins", origin]);
    edge = await startTestEdge({ backends: [server.authority] }, atEnd);
    const created = await fetch(`${server.url}/api/kms/create-key`, {
      method: "POST",
      headers: json,
      body: "{}",
    });
    expect(created.status).toBe(200);
    const browser = await openBrowser();
    atEnd(() => browser.close());
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    listed = await context.newPage();
    await listed.goto(origin);
    unlisted = await context.newPage();
    // A different host name for the same page server is a different origin.
    await unlisted.goto(`http://localhost:${port}`);
  }, 180_000);

  /** Makes a call from a page, and reads the answer until it contains the text. */
  const callFrom = (page: Page, { method = "POST", path, headers = {}, body, contains }: PageCall) =>
    page.evaluate(
      async ({ method, url, headers, body, contains }) => {
        try {
          const answer = await fetch(url, { headers, ...(body !== undefined && { method, body }) });
          const { status } = answer;
          const type = answer.headers.get("content-type") ?? "";
          const grpcStatus = answer.headers.get("grpc-status");
          const reader = answer.body?.getReader();
          let text = "";
          const decode = () =>
            type.startsWith("application/grpc-web-text")
              ? (text.match(/[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2,3}={1,2}/g) ?? [])
                  .map((group) => atob(group))
                  .join("")
              : text;
          while (!decode().includes(contains)) {
            const part = await reader?.read();
            if (part === undefined || part.done) break;
            text += Array.from<number, string>(part.value, (byte) => String.fromCharCode(byte)).join("");
          }
          await reader?.cancel();
          return { status, isThere: decode().includes(contains), grpcStatus };
        } catch (error) {
          return { failed: error instanceof Error ? error.name : "" };
        }
      },
      { method, url: `${edge.url}${path}`, headers, body, contains },
    );

  it.each(calls)("may call $name if its origin is allowed", async (call) => {
    const grpcStatus = call.contains === "" ? "12" : null;
    expect(await callFrom(listed, call)).toEqual({ status: call.status ?? 200, isThere: true, grpcStatus });
  });

  it.each(calls)("may not call $name if its origin is not allowed", async (call) => {
    expect(await callFrom(unlisted, call)).toEqual({ failed: "TypeError" });
  });
}, ["chromium-headless-shell"]);
