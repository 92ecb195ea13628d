import { beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { type ApiServer, startApi } from "./api-server.ts";

let api: ApiServer;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
}, 180_000);

/** The description omits the calls of Google's interface that are always refused with 501. */
function listRefused(path: string): string[] {
  return /^\/v1\/.*\/cryptoKey(s|Versions)\/\{name\d\}$/.test(path) ? ["DELETE"] : [];
}

const targetOf = (path: string): string => api.url + path.replace(/\{[^}]+\}/g, "some-id");

describe("a path of the API description", () => {
  it("returns in Allow exactly the described methods, plus HEAD for GET and OPTIONS", async () => {
    const paths = Object.entries(api.document.paths);
    expect(paths.length).toBeGreaterThan(60);
    for (const [path, operations] of paths) {
      const described = Object.keys(operations).map((name) => name.replace("x-query", "query").toUpperCase());
      const listed = [...described, ...listRefused(path)];
      const expected = [...listed, ...(listed.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ");
      const { status, headers } = await fetch(targetOf(path), { method: "OPTIONS" });
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

  it("returns 405 for each undescribed method", async () => {
    for (const [path, operations] of Object.entries(api.document.paths)) {
      for (const method of ["GET", "PUT", "POST", "DELETE", "PATCH"]) {
        if (Object.hasOwn(operations, method.toLowerCase())) continue;
        const { status } = await fetch(targetOf(path), { method });
        const expected = listRefused(path).includes(method) ? 501 : 405;
        expect([method, path, status]).toEqual([method, path, expected]);
      }
    }
  });
});
