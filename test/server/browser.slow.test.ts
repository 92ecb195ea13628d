/** Which pages of other origins a browser lets call. */
import { once } from "node:events";
import { accessSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { createServiceImplSpec, type ServiceImpl } from "@connectrpc/connect";
import { chromium, type Page } from "playwright-core";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Probe } from "../gen/probing/probe_pb.ts";
import { isMissing } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { echo } from "./probe.ts";
import { serve } from "./serve.ts";

const timeout = 180_000;
const listed = "https://console.example.com";

/** Serves probing.Probe until the end. @returns its port */
async function start(corsOrigins: readonly string[] = []): Promise<number> {
  const { server, port } = await serve({
    services: [createServiceImplSpec<typeof Probe>(Probe, echo as ServiceImpl<typeof Probe>)],
    limits: { maxDrainMs: 0 },
    corsOrigins,
  });
  onTestFinished(() => {
    server.destroy();
    return server.close();
  });
  return port;
}

const browser = isMissing("chromium") ? "a browser (chromium is not installed)" : "a browser";

describe.skipIf(isMissing("chromium"))(browser, { timeout }, () => {
  const atEnd = endAfterAll();
  let page: Page;
  let pageOrigin = "";
  beforeAll(async () => {
    const pages = http.createServer((_req, res) => {
      res.setHeader("content-type", "text/html").end("<!doctype html><title>a page</title>");
    });
    pages.listen(0, "127.0.0.1");
    await once(pages, "listening");
    atEnd(() => void pages.close());
    pageOrigin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    // Root, which tests in containers are, has no sandbox.
    const launched = await chromium.launch({
      executablePath: findProgram("chromium"),
      args: ["--no-sandbox"],
    });
    atEnd(() => launched.close());
    page = await launched.newPage();
    await page.goto(pageOrigin);
  }, timeout);

  const calls = [
    {
      call: "Connect",
      path: "/probing.Probe/Ask",
      method: "POST",
      headers: { "connect-protocol-version": "1" },
    },
    { call: "REST", path: "/probe/look", method: "GET", headers: {} },
    { call: "REST by QUERY", path: "/probe/find", method: "QUERY", headers: {} },
    { call: "REST with a token", path: "/probe/look", method: "GET", headers: { authorization: "Bearer x" } },
    { call: "gRPC-Web", path: "/probing.Probe/None", method: "POST", headers: { "x-grpc-web": "1" } },
  ];
  const types: Readonly<Record<string, string>> = { "gRPC-Web": "application/grpc-web+proto" };

  /** Calls from the page. @returns the status, or the name of the error that the page sees */
  const fetchFromPage = (port: number, { call, path, method, headers }: (typeof calls)[number]) =>
    page.evaluate(
      async ({ url, init }) => {
        try {
          const answer = await fetch(url, init);
          return { status: answer.status, grpcStatus: answer.headers.get("grpc-status") };
        } catch (error) {
          return { failed: error instanceof Error ? error.name : "" };
        }
      },
      {
        url: `http://127.0.0.1:${port}${path}`,
        init: {
          method,
          headers: {
            ...headers,
            ...(method !== "GET" && { "content-type": types[call] ?? "application/json" }),
          },
          ...(method !== "GET" && { body: call === "gRPC-Web" ? "\0\0\0\0\0" : "{}" }),
        },
      },
    );

  it.each(calls)("lets a page of a listed origin call $call", async (call) => {
    const port = await start([pageOrigin]);
    // UNIMPLEMENTED, which the page reads in a header that is exposed.
    const grpcStatus = call.call === "gRPC-Web" ? "12" : null;
    expect(await fetchFromPage(port, call)).toEqual({ status: 200, grpcStatus });
  });

  it.each(calls)("keeps a page of an unlisted origin from $call", async (call) => {
    const port = await start([listed]);
    expect(await fetchFromPage(port, call)).toEqual({ failed: "TypeError" });
  });

  it.each(calls)("keeps a page of another origin from $call while none is listed", async (call) => {
    const port = await start();
    expect(await fetchFromPage(port, call)).toEqual({ failed: "TypeError" });
  });

  it("keeps a page without an origin of its own from calling", async () => {
    const port = await start([pageOrigin]);
    const script = `fetch("http://127.0.0.1:${port}/livez").then(() => "read", (error) => error.name)
      .then((text) => parent.postMessage(text, "*"))`;
    const failed = await page.evaluate(`new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.sandbox.add("allow-scripts");
      frame.srcdoc = "<script>" + ${JSON.stringify(script)} + "</" + "script>";
      addEventListener("message", ({ data }) => resolve(data));
      document.body.append(frame);
    })`);
    expect(failed).toBe("TypeError");
  });
});

function findProgram(name: string): string {
  for (const directory of (process.env.PATH ?? "").split(delimiter)) {
    try {
      accessSync(join(directory, name));
      return join(directory, name);
    } catch {}
  }
  throw new Error(`${name} is not installed`);
}
