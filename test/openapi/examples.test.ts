import { beforeAll, describe, expect, it } from "vitest";
import { type Example, fillExample, type Json } from "../../src/calls/example.ts";
import type { Parameter } from "../../src/openapi/document.ts";
import { collectProfiles } from "../../src/services/registry.ts";
import { endAfterAll } from "../support/at-end.ts";
import { loadPackages } from "../support/whole-program.ts";
import { type ApiServer, startApi } from "./api-server.ts";
import {
  callExamples,
  findBodyField,
  findOperation,
  findPattern,
  listOperations,
  loadExamples,
  type Outcome,
} from "./call-examples.ts";
import { type CheckSchema, createCheck } from "./check-schema.ts";
import { cleanAnswer, secretNames, tokenSample } from "./clean-answer.ts";
import { listRecorded } from "./read-answers.ts";

const examples = await loadExamples();
const profiles = collectProfiles(await loadPackages());
let api: ApiServer;
let outcomes: ReadonlyMap<string, Outcome>;
let check: CheckSchema;
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  check = createCheck(api.document);
  outcomes = await callExamples(api, examples);
}, 180_000);

function outcomeOf(name: string): Outcome {
  const outcome = outcomes.get(name);
  if (outcome === undefined) throw new Error(`${name} was not called`);
  return outcome;
}

/** Returns the request that the document shows for an example, assembled from parameters and body. */
function shownRequest({ rpc, name, request }: Example): unknown {
  const { operation } = findOperation(api.document, rpc);
  const parameters = (operation.parameters ?? []).filter((one): one is Parameter => "example" in one);
  const fields: Record<string, unknown> = {};
  for (const parameter of parameters) {
    const { name: field, example } = parameter;
    const pattern = findPattern(parameter);
    if (pattern === undefined) fields[field] = example;
    else fields[pattern.field] = pattern.fill(fields[pattern.field], String(example));
  }
  const [{ example, examples: several } = {}] = Object.values(operation.requestBody?.content ?? {});
  const body = (several?.[name]?.value ?? example ?? {}) as object;
  const members = request as Record<string, unknown>;
  const bodyField = findBodyField(operation, members);
  if (bodyField === undefined) return { ...fields, ...body };
  // A parameter may be a part of the body's field, such as the name of a key.
  const others = Object.entries(fields).filter(([path]) => path in members);
  // A parameter shows the value of its RPC's first example, whereas a body shows all.
  const isFirst = examples.find((one) => one.rpc === rpc)?.name === name;
  return { ...Object.fromEntries(others), ...(!isFirst && members), [bodyField]: body };
}

describe("the examples of the API description", () => {
  it("exist for every operation, which names its RPC", () => {
    const operations = listOperations(api.document).map(({ operation }) => operation);
    // Other bindings of an RPC share its examples.
    const rpcs = operations.map(({ operationId }) => operationId.replace(/_\d+$/, ""));
    const shown = new Set(examples.map(({ rpc }) => rpc.replaceAll(".", "_")));
    expect(rpcs.filter((rpc) => !shown.has(rpc))).toEqual([]);
    const named = operations.map((operation) => operation["x-grpc"].method.replaceAll(/[./]/g, "_"));
    expect(named).toEqual(rpcs);
  });

  it.each(examples)("$rpc: $name is shown, and answered as the document describes", (example) => {
    expect(shownRequest(example)).toEqual(fillExample(example.request, ({ sample }) => sample));
    const { found, status, mediaType, body } = outcomeOf(example.name);
    expect(status).toBe(200);
    const service = example.rpc.slice(0, example.rpc.lastIndexOf("."));
    const isOurs = profiles[service]?.restStyle === undefined;
    if (mediaType === "application/json" && isOurs) expect(body).toMatchObject({ status: "success" });
    const place = ["paths", found.path, found.method, "responses", "200", "content", mediaType, "schema"];
    expect(check(place, body ?? "")).toEqual([]);
  });

  it("are valid values of their parameters", () => {
    const wrong = listOperations(api.document).flatMap(({ path, method, operation }) =>
      (operation.parameters ?? []).flatMap((parameter, index) => {
        if (!("schema" in parameter) || parameter.example === undefined) return [];
        const place = ["paths", path, method, "parameters", String(index), "schema"];
        return check(place, parameter.example).map((fault) => `${path} ${parameter.name}: ${fault}`);
      }),
    );
    expect(wrong).toEqual([]);
  });

  const withBody = examples.filter(
    ({ rpc }) => !/\.(Get(?!ImportParameters)|List|Watch|Hello|Destroy|Export|Remove|Revoke)/.test(rpc),
  );
  it.each(withBody)("$rpc: $name sends the documented request", ({ name }) => {
    const { found, sent } = outcomeOf(name);
    const [mediaType = ""] = Object.keys(found.operation.requestBody?.content ?? {});
    const place = ["paths", found.path, found.method, "requestBody", "content", mediaType, "schema"];
    expect(check(place, sent)).toEqual([]);
  });
});

const answers = listRecorded(examples);

/** Lists every text in an answer, with the name of its field. */
function listTexts(value: Json, name = ""): [name: string, text: string][] {
  if (typeof value === "string") return [[name, value]];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((part) => listTexts(part, name));
  return Object.entries(value).flatMap(([key, part]) => listTexts(part, key));
}

const recorded = Object.entries(answers);
const texts = recorded.flatMap(([example, answer]) =>
  listTexts(answer).map(([name, text]) => ({ example, name, text })),
);

/** Public fields with bytes, or texts that contain bytes. Add a new field here if it is not secret. */
const publicNames = new Set(
  `bytes certificate challenge checkpoint ciphertext compositePublicKey compositePublicKeyPem compositeSignature confirmation creatorPublicKey
  creatorPublicKeyPem creatorSignature csr csrPem data ecdsaPublicKey ecdsaPublicKeyPem ecdsaSignature encapsulatedKey
  ephemeralCiphertext gatewayIdentityPublicKey gatewayIdentityPublicKeyPem gatewayWireguardPublicKey hashes identityPublicKey identityPublicKeyPem kemPublicKey
  kemPublicKeyPem kemPublicKeySignature keyConfirmation kid leaf mldsaPublicKey mldsaPublicKeyPem mldsaSignature packet
  metadata pem pub publicKey publicKeyPem registeredCiphertext rootHash sha256 sha512 signature signatureLine signingHash statement transcript verifierKeys
  canonicalJson nextPageToken subject wireguardPublicKey witnessKey witnessKeys`.split(/\s+/),
);

/**
 * Whether a text contains 16 or more bytes in base64, not counting identifiers, hexadecimal hashes, paths and
 * names.
 */
function hasBytes(text: string): boolean {
  const runs = text.match(/[\w+/-]{22,}={0,2}/g) ?? [];
  return runs.some((run) => /[A-Z]/.test(run) && /[a-z]/.test(run) && /\d/.test(run));
}

describe("the recorded answers", () => {
  it("exist for every example and nothing else: npm run answers records them", () => {
    expect(recorded.map(([name]) => name).sort()).toEqual(examples.map(({ name }) => name).sort());
  });

  it("contain no secrets or tokens", () => {
    const secrets = texts.filter(({ name, text }) => secretNames.test(name) && text !== "");
    expect(secrets.length).toBeGreaterThan(8);
    const hidden = [tokenSample, "(secret)"];
    expect(secrets.filter(({ text }) => !hidden.includes(text) && !text.includes("SECRET/OF"))).toEqual([]);
    // The canonical JSON of a TUF root begins like a token.
    const others = texts.filter(
      ({ text }) => !text.startsWith(Buffer.from('{"_type":"root"').toString("base64")),
    );
    expect(others.filter(({ text }) => /eyJ[\w-]{10}|PRIVATE KEY/.test(text))).toEqual([]);
  });

  it("contain bytes only in fields known to be public", () => {
    const others = texts.filter(
      ({ example, name, text }) =>
        hasBytes(text) &&
        !publicNames.has(name) &&
        !text.includes("SECRET/OF") &&
        // Resource names, and bodies that are not JSON.
        !/^(projects|quantum-safe-playground)\//.test(text) &&
        example !== "get-tile",
    );
    expect(others).toEqual([]);
  });
});

it.each(["token", "access_token", "privateKey", "privateKeySeed", "client_secret", "password"])(
  "recording an answer removes %s anywhere",
  (name) => {
    const secret = Buffer.alloc(32, 0xfb).toString("base64");
    for (const text of [secret, "eyJhbGciOiJub25lIn0.e30.c2ln", "correct horse"])
      expect(JSON.stringify(cleanAnswer({ list: [{ [name]: text }] }))).not.toContain(text);
  },
);
