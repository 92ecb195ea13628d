/** The npm package grpc-web in Chromium, on a page of a different origin. Its default is text mode. */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CreateKeyRequestSchema,
  CreateKeyResponseSchema,
  GetKeyRequestSchema,
  WatchAuditLogRequestSchema,
  WatchAuditLogResponseSchema,
} from "#gen/kms/kms_service_pb.ts";
import { lacksBrowser, openBrowser } from "../../console/test/browser.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const library = join(import.meta.dirname, "clients/node/node_modules/grpc-web/index.esm.js");
const isMissing = lacksBrowser || (!existsSync(library) && process.env.QSP_TEST_REQUIRE_ALL !== "1");

/** Result of a call as the page sees it. */
interface PageCall {
  readonly messages: readonly (readonly number[])[];
  readonly code: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The page's script: makes calls with bytes as messages. `follow` reads a given number of messages from a stream. */
const script = `
import { GrpcWebClientBase, MethodDescriptor } from "/grpc-web.js";
const describe = (path, type) => new MethodDescriptor(path, type, Object, Object, (bytes) => bytes, (bytes) => bytes);
globalThis.ask = (url, path, bytes, options) => new Promise((resolve) => {
  const client = new GrpcWebClientBase(options);
  client.rpcCall(url + path, new Uint8Array(bytes), {}, describe(path, "unary"), (error, message) => {
    const { code = 0, metadata = {} } = error ?? {};
    resolve({ messages: message ? [[...message]] : [], code, metadata });
  });
});
globalThis.follow = (url, path, bytes, count) => new Promise((resolve) => {
  const messages = [];
  const stream = new GrpcWebClientBase().serverStreaming(url + path, new Uint8Array(bytes), {}, describe(path, "server_streaming"));
  const end = (code, metadata = {}) => { stream.cancel(); resolve({ messages, code, metadata }); };
  stream.on("data", (message) => { if (messages.push([...message]) === count) end(0); });
  stream.on("error", ({ code, metadata }) => end(code, metadata));
});
globalThis.isReady = true;
`;

function encode<Desc extends DescMessage>(desc: Desc, message: MessageInitShape<Desc>): Uint8Array {
  return toBinary(desc, create(desc, message));
}

/** Serves the page from a separate origin. */
function createPageServer(): http.Server {
  return http.createServer(({ url }, res) => {
    if (url === "/grpc-web.js") res.setHeader("content-type", "text/javascript").end(readFileSync(library));
    else res.setHeader("content-type", "text/html").end(`<script type="module">${script}</script>`);
  });
}

describe.skipIf(isMissing)(
  `the npm package grpc-web${isMissing ? " (needs chromium-headless-shell and npm ci in clients/node)" : ""}`,
  { timeout: 180_000 },
  () => {
    let server: RunningServer;
    let browser: Browser;
    let page: Page;
    const pages = createPageServer();
    beforeAll(async () => {
      pages.listen(0, "127.0.0.1");
      await once(pages, "listening");
      const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
      const args = ["--cors-origins", origin];
      server = await startServer({ dataDir: makeTemporaryDirectory(afterAll), args });
      browser = await openBrowser();
      page = await browser.newPage();
      await page.goto(origin);
      await page.waitForFunction("globalThis.isReady");
    }, 180_000);
    afterAll(async () => {
      await browser.close();
      await server.stop();
      pages.close();
    });

    const call = (name: "ask" | "follow", path: string, bytes: Uint8Array, ...more: unknown[]) => {
      const given = [server.url, `/kms.KmsService/${path}`, [...bytes], ...more];
      return page.evaluate<PageCall>(`${name}(...${JSON.stringify(given)})`);
    };
    const createKey = encode(CreateKeyRequestSchema, { algorithm: "ML-DSA-44" });

    describe.each([
      ["in text mode, its default", {}],
      ["in binary mode", { format: "binary" }],
    ])("%s", (_mode, options) => {
      it("calls", async () => {
        const { messages, code } = await call("ask", "CreateKey", createKey, options);
        expect(code).toBe(0);
        const { result } = fromBinary(CreateKeyResponseSchema, Uint8Array.from(messages[0] ?? []));
        expect(result?.keyId).toMatch(/^key-/);
      });

      it("receives the reason of a refused call", async () => {
        const unknown = encode(GetKeyRequestSchema, { keyId: "name/none" });
        const { code, metadata } = await call("ask", "GetKey", unknown, options);
        expect(code).toBe(5);
        expect(metadata).toHaveProperty("grpc-status-details-bin");
      });
    });

    it("receives each message of a running server stream in text mode", async () => {
      const since = encode(WatchAuditLogRequestSchema, { afterSequence: 0 });
      const following = call("follow", "WatchAuditLog", since, 4);
      for (let i = 0; i < 4; i += 1) await call("ask", "CreateKey", createKey, {});
      const { messages, code } = await following;
      expect(code).toBe(0);
      const sequences = messages.map(
        (bytes) => fromBinary(WatchAuditLogResponseSchema, Uint8Array.from(bytes)).entry?.sequence,
      );
      expect(sequences).toEqual([1, 2, 3, 4]);
    });

    it("receives the reason of a refused stream in text mode", async () => {
      const bad = encode(WatchAuditLogRequestSchema, { keyId: "\u0001" });
      const { code, metadata } = await call("follow", "WatchAuditLog", bad, 1);
      expect(code).toBe(3);
      expect(metadata).toHaveProperty("grpc-status-details-bin");
    });
  },
);
