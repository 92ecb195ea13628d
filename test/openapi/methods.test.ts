import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiServer, startApi } from "./api-server.ts";

let api: ApiServer;
const ends: (() => void | Promise<void>)[] = [];

beforeAll(async () => {
  api = await startApi("open", (end) => void ends.push(end));
}, 60_000);

afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

const targetOf = (path: string): string => api.url + path.replace(/\{[^}]+\}/g, "some-id");

describe("a path of the API description", () => {
  it("has in Allow exactly the methods that the description lists, with HEAD for GET, and OPTIONS", async () => {
    const paths = Object.entries(api.document.paths);
    expect(paths.length).toBeGreaterThan(60);
    for (const [path, operations] of paths) {
      const listed = Object.keys(operations).map((method) => method.toUpperCase());
      const expected = [...listed, ...(listed.includes("GET") ? ["HEAD"] : []), "OPTIONS"].sort().join(", ");
      const { status, headers } = await fetch(targetOf(path), { method: "OPTIONS" });
      expect([path, status, headers.get("allow")]).toEqual([path, 204, expected]);
    }
  });

  it("answers 405 to each method that the description does not list", async () => {
    for (const [path, operations] of Object.entries(api.document.paths)) {
      for (const method of ["GET", "PUT", "POST", "DELETE", "PATCH"]) {
        if (Object.hasOwn(operations, method.toLowerCase())) continue;
        const { status } = await fetch(targetOf(path), { method });
        expect([method, path, status]).toEqual([method, path, 405]);
      }
    }
  });
});
