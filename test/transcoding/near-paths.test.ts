import { describe, expect, it } from "vitest";
import { createNearPaths } from "../../src/transcoding/near-paths.ts";
import { parseTemplate } from "../../src/transcoding/template.ts";

const routes = [
  "GET /api/kms/keys",
  "POST /api/kms/sign",
  "POST /api/kms/verify",
  "GET /api/kms/key/{key_id}",
  "POST /api/kms/key/{key_id}/sign",
  "GET /api/logs/{log_id}/tile/{path=**}",
  "POST /v1/{name=projects/*/keys/*}:encrypt",
  "POST /v1/{name=projects/*/keys/*}:destroy",
  ...["restore-key", "disable-key", "import-key"].map((operation) => `POST /api/kms/${operation}`),
  "GET /a/cat",
  "POST /a/car",
].map((line) => {
  const [httpMethod = "", text = ""] = line.split(" ");
  return { httpMethod, template: parseTemplate(text), origin: text };
});
const find = createNearPaths(routes);

describe("the path that is near an unknown one", () => {
  it.each([
    ["/api/kms/sing", "/api/kms/sign"],
    ["/api/kms/key", "/api/kms/keys"],
    ["/API/KMS/Sign", "/api/kms/sign"],
    ["/api/kms/keys/", "/api/kms/keys"],
    ["/api/kns/key/key-123/sgin", "/api/kms/key/{key_id}/sign"],
    ["/kms/keys", "/api/kms/keys"],
    ["/kms/key/key-123/sign", "/api/kms/key/{key_id}/sign"],
    ["/v1/projects/p/keys/k:encrpyt", "/v1/{name=projects/*/keys/*}:encrypt"],
    ["/v1/project/p/keys/k:destroy", "/v1/{name=projects/*/keys/*}:destroy"],
  ])("%s is like %s", (path, template) => {
    expect(find("POST", path)).toBe(template);
  });

  it("is the one that has the method, of two that are equally near", () => {
    expect([find("GET", "/a/caz"), find("POST", "/a/caz")]).toEqual(["/a/cat", "/a/car"]);
  });

  it.each([
    "/",
    "//",
    "*",
    "/favicon.ico",
    "/.env",
    "/api/kms/entirely-different",
    // Other operations, also opposite ones.
    "/api/kms/destroy-key",
    "/api/kms/enable-key",
    "/api/kms/export-key",
    "/v1/projects/p/keys/k:decrypt",
    "/api/abc/keys",
    "/xbi/kns/kyxs",
    "/wp-admin/keys",
    "/api/kms/key//sgin",
    `/api/kms/key/${"a".repeat(128)}/sgin`,
    `/${"a/".repeat(60)}`,
    "/api/%ff/sing",
  ])("is none for %s", (path) => {
    expect(find("GET", path)).toBeUndefined();
  });
});
