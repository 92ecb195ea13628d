import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { endAfterAll } from "../support/at-end.ts";
import { type ApiServer, startApi } from "./api-server.ts";

let api: ApiServer;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
}, 180_000);

function get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  return fetch(api.url + path, { method, headers });
}

const served = [
  ["/openapi.json", "application/json"],
  ["/openapi.yaml", "application/yaml"],
  ["/reference", "text/html"],
] as const;

describe.each(served)("GET %s", (path, type) => {
  it(`returns ${type} and forbids content sniffing`, async () => {
    const { status, headers } = await get(path);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(new RegExp(`^${type}(;|$)`));
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("is the same with gzip, without, and for a client that refuses it", async () => {
    const answers = await Promise.all(
      ["br;q=0.5, gzip", "identity", "gzip;q=0, identity"].map((accept) =>
        get(path, { "accept-encoding": accept }),
      ),
    );
    expect(answers.map(({ headers }) => headers.get("content-encoding"))).toEqual(["gzip", null, null]);
    expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
  });

  it("is not sent to a client that already has it, or for HEAD", async () => {
    const { headers } = await get(path);
    const again = await get(path, { "if-none-match": headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const head = await get(path, {}, "HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });
});

describe("the API description", () => {
  it.each(["1.1", "1.2"] as const)("is the same as JSON and as YAML %s", async (version) => {
    const yaml = await (await get("/openapi.yaml")).text();
    expect(parse(yaml, { maxAliasCount: 0, version })).toEqual(api.document);
  });

  it("contains the server's version, but no address", () => {
    expect(api.document).toMatchObject({
      openapi: "3.1.1",
      info: { version: expect.stringMatching(/^\d+\.\d+\.\d+$/) },
    });
    expect(api.document.servers.map(({ url }) => url)).toEqual(["/"]);
  });
});

describe("the reference page", () => {
  it("allows scripts and styles only from the server's own files", async () => {
    const policy = (await get("/reference")).headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none';/);
    expect(policy).toContain("script-src 'self';");
    expect(policy).not.toMatch(/unsafe-|https?:|\*/);
  });

  it("contains no external address", async () => {
    const page = await (await get("/reference")).text();
    expect(page.match(/(?:src|href)="[^"]+"/g)?.length).toBeGreaterThan(4);
    expect(page).not.toMatch(/(?:src|href)="(?:\w+:|\/\/)/);
  });
});

/** The description omits the calls of Google's interface that are always refused with 501. */
function listRefused(path: string): string[] {
  return /^\/v1\/.*\/cryptoKey(s|Versions)\/\{name\d\}$/.test(path) ? ["DELETE"] : [];
}

describe("a path of the API description", () => {
  it("returns in Allow exactly the described methods, plus HEAD for GET and OPTIONS", async () => {
    const paths = Object.entries(api.document.paths);
    expect(paths.length).toBeGreaterThan(60);
    for (const [path, operations] of paths) {
      const described = Object.keys(operations).map((name) => name.replace("x-query", "query").toUpperCase());
      const listed = [...described, ...listRefused(path)];
      const expected = [...listed, ...(listed.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ");
      const { status, headers } = await fetch(api.url + path.replace(/\{[^}]+\}/g, "some-id"), {
        method: "OPTIONS",
      });
      expect([path, status, headers.get("allow")]).toEqual([path, 204, expected]);
    }
  });

  it("accepts QUERY where an extension describes it, and lists its media types", async () => {
    const paths = Object.entries(api.document.paths).filter(([, operations]) => "x-query" in operations);
    expect(paths.map(([path]) => path)).toEqual(["/api/grpc/verify", "/api/kms/verify"]);
    for (const [path, { "x-query": operation }] of paths) {
      const { status, headers } = await fetch(api.url + path, { method: "QUERY" });
      const types = Object.keys(operation?.requestBody?.content ?? {}).join(", ");
      expect([path, status, headers.get("accept-query")]).toEqual([path, 400, types]);
    }
  });
});
