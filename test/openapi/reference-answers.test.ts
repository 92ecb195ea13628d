/** What the reference fills into the examples of a call from the answers to others. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type ApiDocument,
  isOpen,
  type Json,
  needsToken,
  type Operation,
  readDocument,
} from "../../src/console/page/reference/document.ts";
import {
  findSource,
  keepAnswer,
  listLinkedFields,
} from "../../src/console/page/reference/earlier-answers.ts";
import { buildHttp, draftRequest } from "../../src/console/page/reference/request.ts";
import { readClaims } from "../../src/console/page/reference/token-claims.ts";
import { type ApiServer, startApi } from "./api-server.ts";

let api: ApiServer;
let page: ApiDocument;
const ends: (() => void | Promise<void>)[] = [];

beforeAll(async () => {
  api = await startApi("open", (end) => void ends.push(end));
  page = readDocument(JSON.parse(JSON.stringify(api.document)));
}, 180_000);

afterAll(async () => {
  for (const end of ends.reverse()) await end();
});

function find(rpc: string): Operation {
  const found = page.operations.find((one) => one["x-grpc"].method === rpc);
  if (found === undefined) throw new Error(`no operation ${rpc}`);
  return found;
}

const fill = (operation: Operation, example = "") =>
  draftRequest(operation, example, listLinkedFields(operation, example));

/** Makes a call with the example as the page fills it in, and keeps the answer as the page does. */
async function make(rpc: string, example = ""): Promise<Json> {
  const operation = find(rpc);
  const { verb, url, body } = buildHttp(operation, fill(operation, example), api.url);
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: verb, headers, ...(body !== undefined && { body }) });
  const answer = (await response.json()) as Json;
  expect(response.status, JSON.stringify(answer)).toBe(200);
  keepAnswer(page, operation, example, answer);
  return answer;
}

it("shows no extension of the description as a call", () => {
  expect(api.document.paths["/api/kms/verify"]).toHaveProperty("x-query");
  expect(page.operations.filter(({ path }) => path === "/api/kms/verify").map(({ verb }) => verb)).toEqual([
    "POST",
  ]);
});

describe("the examples of the reference, one after the other and unedited", () => {
  it("create a key, sign with it, verify, and read the key", async () => {
    await make("kms.KmsService/CreateKey");
    await make("kms.KmsService/Sign");
    expect(await make("kms.KmsService/Verify")).toMatchObject({ result: { valid: true } });
    await make("kms.KmsService/GetKey");
  });

  it("use for decapsulation the key of the example that makes such a key", async () => {
    await make("kms.KmsService/CreateKey", "create-kem-key");
    await make("kms.KmsService/CreateKey", "create-key");
    await make("kms.KmsService/Encapsulate");
    await make("kms.KmsService/Decapsulate");
  });

  it.each([
    ["a signature", ["pqc.PqcService/SignData", "pqc.PqcService/VerifySignature"]],
    ["a wallet", ["wallet.WalletService/CreateWallet", "wallet.WalletService/SignTransaction"]],
    ["a tunnel", ["vpn.VpnService/RegisterPeer", "vpn.VpnService/Handshake"]],
    ["a device", ["iot.IotService/RegisterDevice", "iot.IotService/IssueChallenge"]],
    ["a wallet of several", ["defi.DefiService/CreateMultisig", "defi.DefiService/CreateProposal"]],
  ])("go on with %s", async (_what, rpcs) => {
    for (const rpc of rpcs) await make(rpc);
  });

  it("name the call to make first, and the example to choose there", () => {
    const [linked] = listLinkedFields(find("kms.KmsService/Decapsulate"), "");
    expect(linked && findSource(page, linked)).toEqual({
      operationId: "kms_KmsService_CreateKey",
      name: "CreateKey",
      summary: "Creates a key that decapsulates.",
    });
  });

  it("keep of an answer only what other examples take", () => {
    keepAnswer(page, find("kms.KmsService/CreateKey"), "", { result: { keyId: ["not", "a text"] } });
    keepAnswer(page, find("kms.KmsService/CreateKey"), "", "no object");
    const [linked] = listLinkedFields(find("kms.KmsService/Sign"), "");
    expect(linked?.value).toMatch(/^key-/);
  });
});

it("keeps the lines of a block that a comment indents, as code", () => {
  const group = page.groups.find(({ name }) => name === "iot.IotService");
  expect(group?.description).toMatch(
    /\n\n {4}qsp-iot-challenge-v1 +the 32 bytes of a challenge\n {4}qsp-iot-reading-v1 /,
  );
});

it("tells an open server, which ignores tokens, from one that wants them", () => {
  expect(isOpen(page)).toBe(true);
  const operations = page.operations.map((one) => ({ ...one, security: one.security.slice(-1) }));
  expect(isOpen({ operations: operations.filter(needsToken) })).toBe(false);
});

describe("the claims of a pasted token", () => {
  const write = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;

  it("say whose it is and when it expires", () => {
    expect(readClaims(write({ sub: "ada", exp: 1_700_000_000 }))).toEqual({
      subject: "ada",
      expiresAt: new Date("2023-11-14T22:13:20Z"),
    });
  });

  it.each([[null], ["text"], [{ exp: "soon" }], [{ exp: 1e300 }], [{ sub: 7 }]])(
    "are absent in %j",
    (claims) => {
      expect(readClaims(write(claims))).toEqual({ subject: "a token", expiresAt: undefined });
    },
  );
});
