import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { useRunningServer } from "../../test/support/running-server.ts";

const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const server = useRunningServer();

/** Requests a path with only these headers; fetch would add some. */
async function ask(path: string, headers: Record<string, string> = {}, method = "GET") {
  const sent = request(`${server().url}${path}`, { method, headers }).end();
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (response === undefined) throw new Error("no response");
  const body = await buffer(response);
  return { status: response.statusCode, headers: response.headers, body, text: body.toString() };
}

/** The path of the page's script. */
async function scriptPath(): Promise<string> {
  return /src="([^"]+)"/.exec((await ask("/", { accept })).text)?.[1] ?? "none";
}

describe.each([
  ["/", "<h1>Quantum-Safe Playground</h1>"],
  ["/reference", "<h1>API reference</h1>"],
])("the page at %s", (path, heading) => {
  it("is served to a browser, with only the server's own resources, nothing inline, and no framing", async () => {
    const { status, headers, text } = await ask(path, { accept });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    });
    expect(text).toContain(heading);
    expect(text).not.toMatch(/<style|<script(?! type="module" src=)|\son\w+=|\sstyle=/);
  });
});

describe("the console's address", () => {
  const others = ["*/*", "text/plain", "application/json", "text/html;q=0, */*"];
  const headers = [{}, ...others.map((other) => ({ accept: other }))];
  it.each(headers)("serves the list of REST calls to other clients: %o", async (sent) => {
    const { headers, text } = await ask("/", sent);
    expect(headers["content-type"]).toContain("text/plain");
    expect(headers.vary).toContain("accept");
    expect(text).toMatch(/^POST +\/api\/grpc\/sign +pqc\.PqcService\.SignData$/m);
  });

  it("has its own preview picture, with the declared size", async () => {
    const { text } = await ask("/", { accept });
    const picture = await ask(/property="og:image" content="([^"]+)"/.exec(text)?.[1] ?? "none");
    expect(picture).toMatchObject({ status: 200, headers: { "content-type": "image/png" } });
    // PNG (ISO/IEC 15948), section 11.2.1: the header contains width and height from byte 16 on.
    expect([picture.body.readUInt32BE(16), picture.body.readUInt32BE(20)]).toEqual([1200, 630]);
    expect(picture.body.length).toBeLessThan(100_000);
  });

  it("answers 304 to clients that have the page, and HEAD with headers only", async () => {
    const { headers } = await ask("/", { accept });
    const again = await ask("/", { accept, "if-none-match": String(headers.etag) });
    expect([again.status, again.text]).toEqual([304, ""]);
    const head = await ask("/", { accept }, "HEAD");
    expect([head.status, head.text]).toEqual([200, ""]);
    expect(head.headers["content-type"]).toContain("text/html");
  });
});

describe("a server with a configured URL", () => {
  const known = useRunningServer(["--issuer-url", "https://qsp.example.com"]);

  it("uses it for the picture", async () => {
    const page = await (await fetch(known().url, { headers: { accept } })).text();
    expect(page).toMatch(/og:image" content="https:\/\/qsp\.example\.com\/console\/share-\w+\.png"/);
  });
});

it("the reference preloads its description", async () => {
  const { text } = await ask("/reference");
  expect(text).toContain('<link rel="preload" href="/openapi.json" as="fetch" crossorigin>');
});

describe("the console's files", () => {
  it("are immutable under their names, and not compressed for clients that do not accept it", async () => {
    const { status, headers } = await ask(await scriptPath());
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    });
    expect(headers["content-encoding"]).toBeUndefined();
  });

  it.each([
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync],
  ])("are compressed for clients that accept %s, with the same content", async (encoding, decode) => {
    const path = await scriptPath();
    const plain = await ask(path);
    const { headers, body } = await ask(path, { "accept-encoding": `${encoding}, identity` });
    expect(headers).toMatchObject({ "content-encoding": encoding, vary: "accept-encoding" });
    expect(body.length).toBeLessThan(plain.body.length / 2);
    expect(decode(body).equals(plain.body)).toBe(true);
  });

  const absent = ["/console/none.js", "/console/..%2fpackage.json", "/console/", "/console/a/b"];
  it.each(absent)("do not include %s", async (path) => {
    const { status, text } = await ask(path);
    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({ details: [{ reason: "ROUTE_NOT_FOUND" }] });
  });
});
