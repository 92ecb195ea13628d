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

  it("is the same with and without gzip", async () => {
    const plain = await get(path, { "accept-encoding": "identity" });
    const gzipped = await get(path, { "accept-encoding": "br;q=0.5, gzip" });
    expect([plain, gzipped].map(({ headers }) => headers.get("content-encoding"))).toEqual([null, "gzip"]);
    expect(await gzipped.text()).toBe(await plain.text());
  });

  it("is not compressed for a client that refuses gzip", async () => {
    const { headers } = await get(path, { "accept-encoding": "gzip;q=0, identity" });
    expect(headers.get("content-encoding")).toBeNull();
  });

  it("returns 304 to a client that already has it", async () => {
    const { headers } = await get(path);
    const again = await get(path, { "if-none-match": headers.get("etag") ?? "" });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  it("responds to HEAD without content", async () => {
    const answer = await get(path, {}, "HEAD");
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
  });
});

describe("the API description", () => {
  it("is the same as JSON and as YAML", async () => {
    expect(parse(await (await get("/openapi.yaml")).text(), { maxAliasCount: 0 })).toEqual(api.document);
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
