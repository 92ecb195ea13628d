/** How the reference parses the API description. */
import { beforeAll, expect, it } from "vitest";
import { type ApiServer, startApi } from "../../../test/openapi/api-server.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import {
  type ApiDocument,
  listSources,
  type Operation,
  readDocument,
} from "../../page/reference/document.ts";
import { buildHttp, draftRequest, findFault } from "../../page/reference/request.ts";
import { languages } from "../../page/snippets/languages.ts";

let api: ApiServer;
let page: ApiDocument;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  page = readDocument(JSON.parse(JSON.stringify(api.document)));
}, 180_000);

function find(rpc: string): Operation {
  const found = page.operations.find((one) => one["x-grpc"].method === rpc);
  if (found === undefined) throw new Error(`no operation ${rpc}`);
  return found;
}

it("does not list specification extensions as calls", () => {
  expect(api.document.paths["/api/kms/verify"]).toHaveProperty("x-query");
  const listed = page.operations.filter(({ path }) => path === "/api/kms/verify");
  expect(listed.map(({ verb }) => verb)).toEqual(["POST"]);
});

it("names the call whose answer contains a sample's value", () => {
  const [source] = listSources(page, find("kms.KmsService/Decapsulate"), "");
  expect(source).toMatchObject({ field: "keyId", path: "result.keyId", name: "CreateKey" });
});

it("names what a browser does not send", () => {
  const create = find("kms.KmsService/CreateKey");
  const draft = draftRequest(create, "");
  const withKey = (key: string) => ({ ...draft, parameters: { "Idempotency-Key": key } });
  expect(create.parameters.map(({ name }) => name)).toContain("Idempotency-Key");
  expect(findFault(create, withKey("key 1"))).toBe("");
  expect(findFault(create, withKey("ключ"))).toMatch(/^Idempotency-Key may have only printable ASCII/);
  expect(findFault(create, { ...draft, body: "{" })).toContain("not JSON");
  const get = find("kms.KmsService/GetKey");
  expect(findFault(get, { ...draftRequest(get, ""), parameters: {} })).toMatch(/^Fill in /);
});

it("uploads a file instead of JSON", () => {
  const upload = find("tuf.RepositoryService/UploadTarget");
  const draft = draftRequest(upload, "");
  expect(draft.body).toBeUndefined();
  expect(findFault(upload, draft)).toMatch(/^Choose a file/);
  const filled = { ...draft, file: new File(["image"], "image.bin") };
  expect(findFault(upload, filled)).toBe("");
  const http = buildHttp(upload, filled, api.url);
  expect(http.headers).toEqual({ "content-type": "application/octet-stream" });
  const input = { http, message: {}, rpc: "", hasToken: false, isStream: false, isJson: true };
  expect(languages.curl.write(input)).toContain("--upload-file image.bin");
  expect(languages.Python.write(input)).toContain('data=open("image.bin", "rb")');
  expect(languages.Go.write(input)).toContain('os.Open("image.bin")');
  expect(languages.TypeScript.write(input)).toContain('body: await openAsBlob("image.bin")');
});

it("keeps the line breaks of indented comment blocks, as code", () => {
  const group = page.groups.find(({ name }) => name === "iot.IotService");
  const block = /\n\n {4}qsp-iot-challenge-v1 +the 32 bytes of a challenge\n {4}qsp-iot-reading-v1 /;
  expect(group?.description).toMatch(block);
});
