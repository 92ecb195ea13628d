import { request } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningServer, startServer } from "../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../test/support/temporary-directory.ts";

const browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const dataDir = makeTemporaryDirectory(afterAll);
let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ dataDir });
}, 180_000);
afterAll(() => server?.stop());

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Requests a path with only these headers; fetch would add some. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** The path of the page's script. */
async function scriptPath(): Promise<string> {
  const { body } = await ask("/", { accept: browserAccept });
  return /src="([^"]+)"/.exec(body.toString())?.[1] ?? "none";
}

describe("the console's address", () => {
  it("serves the page to a browser", async () => {
    const { status, headers, body } = await ask("/", { accept: browserAccept });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
    });
    expect(body.toString()).toContain("<h1>Quantum-Safe Playground</h1>");
  });

  for (const accept of [undefined, "*/*", "text/plain", "application/json", "text/html;q=0, */*"]) {
    it(`serves the list of REST calls to clients that accept ${accept ?? "nothing in particular"}`, async () => {
      const { headers, body } = await ask("/", accept === undefined ? {} : { accept });
      expect(headers["content-type"]).toContain("text/plain");
      expect(headers.vary).toContain("accept");
      expect(body.toString()).toMatch(/^POST +\/api\/grpc\/sign +pqc\.PqcService\.SignData$/m);
    });
  }

  it("allows a page only the server's own resources, nothing inline, and no framing", async () => {
    const { headers } = await ask("/", { accept: browserAccept });
    expect(headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" });
  });

  it("serves a page without inline scripts and styles", async () => {
    const { body } = await ask("/", { accept: browserAccept });
    expect(body.toString()).not.toMatch(/<style|<script(?! type="module" src=)|\son\w+=|\sstyle=/);
  });

  it("has its own preview picture, with the declared size", async () => {
    const { body } = await ask("/", { accept: browserAccept });
    const path = /property="og:image" content="([^"]+)"/.exec(body.toString())?.[1] ?? "none";
    const picture = await ask(path);
    expect(picture).toMatchObject({ status: 200, headers: { "content-type": "image/png" } });
    // PNG (ISO/IEC 15948), section 11.2.1: the header contains width and height from byte 16 on.
    expect([picture.body.readUInt32BE(16), picture.body.readUInt32BE(20)]).toEqual([1200, 630]);
    expect(picture.body.length).toBeLessThan(100_000);
  });

  it("uses the server's URL for the picture if configured", async () => {
    const place = makeTemporaryDirectory();
    const args = ["--issuer-url", "https://qsp.example.com"];
    const known = await startServer({ dataDir: place, args });
    const page = await (await fetch(known.url, { headers: { accept: browserAccept } })).text();
    await known.stop();
    expect(page).toMatch(
      /property="og:image" content="https:\/\/qsp\.example\.com\/console\/share-\w+\.png"/,
    );
  });

  it("answers 304 to clients that have the page", async () => {
    const { headers } = await ask("/", { accept: browserAccept });
    const again = await ask("/", { accept: browserAccept, "if-none-match": String(headers.etag) });
    expect({ status: again.status, bytes: again.body.length }).toEqual({ status: 304, bytes: 0 });
  });

  it("answers HEAD with headers only", async () => {
    const { status, headers, body } = await ask("/", { accept: browserAccept }, "HEAD");
    expect({ status, bytes: body.length }).toEqual({ status: 200, bytes: 0 });
    expect(headers["content-type"]).toContain("text/html");
  });
});

describe("the reference's address", () => {
  it("serves the page to everyone, and preloads script and description", async () => {
    const { status, headers, body } = await ask("/reference");
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
    });
    expect(body.toString()).toContain("<h1>API reference</h1>");
    expect(body.toString()).toContain('<link rel="preload" href="/openapi.json" as="fetch" crossorigin>');
  });

  it("has the console's policy, and nothing inline", async () => {
    const [console, reference] = await Promise.all([ask("/", { accept: browserAccept }), ask("/reference")]);
    expect(reference.headers["content-security-policy"]).toBe(console.headers["content-security-policy"]);
    expect(reference.body.toString()).not.toMatch(/<style|<script(?! type="module" src=)|\son\w+=|\sstyle=/);
  });
});

describe("the console's files", () => {
  it("are immutable under their names", async () => {
    const { status, headers } = await ask(await scriptPath());
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff",
    });
  });

  const decoders: Record<string, (bytes: Buffer) => Buffer> = { br: brotliDecompressSync, gzip: gunzipSync };
  for (const [encoding, decode] of Object.entries(decoders)) {
    it(`are compressed for clients that accept ${encoding}, with the same content`, async () => {
      const path = await scriptPath();
      const plain = await ask(path);
      const { headers, body } = await ask(path, { "accept-encoding": `${encoding}, identity` });
      expect(headers).toMatchObject({ "content-encoding": encoding, vary: "accept-encoding" });
      expect(body.length).toBeLessThan(plain.body.length / 2);
      expect(decode(body).equals(plain.body)).toBe(true);
    });
  }

  it("are not compressed for clients that do not accept it", async () => {
    expect((await ask(await scriptPath())).headers["content-encoding"]).toBeUndefined();
  });

  for (const path of ["/console/none.js", "/console/..%2fpackage.json", "/console/", "/console/a/b"]) {
    it(`do not include ${path}`, async () => {
      const { status, body } = await ask(path);
      expect(status).toBe(404);
      expect(JSON.parse(body.toString())).toMatchObject({ details: [{ reason: "ROUTE_NOT_FOUND" }] });
    });
  }
});
