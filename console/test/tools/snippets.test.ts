import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readdirSync } from "node:fs";
import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { services } from "../../../src/client/services.ts";
import { findPython } from "../../../test/interop/python.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { chooseFormat, listFormats, writeBytes, writePublicKeyPem } from "../../page/byte-formats.ts";
import { describeCall, type SnippetCall } from "../../page/snippets/call.ts";
import { type LanguageName, languageNames, languages } from "../../page/snippets/languages.ts";
import { quotePythonOrGo, quoteShell, writeJson } from "../../page/snippets/literals.ts";
import { hostileTexts } from "./hostile-texts.ts";

const origin = "http://127.0.0.1:8080";

function plan<I extends DescMessage>(
  method: DescMethodUnary<I>,
  init: MessageInitShape<I>,
  token?: string,
): SnippetCall {
  return { method, request: create(method.input, init), token };
}

function write(name: LanguageName, call: SnippetCall, isShort = false): string {
  return languages[name].write(describeCall(call, origin, isShort));
}

describe("a story's call as a program", () => {
  it("reads its token from the environment, and contains neither token nor password", () => {
    const login = { username: "ada", password: "a-secret-password" };
    const call = plan(PqcService.method.issueToken, login, "a-secret-token");
    for (const name of languageNames) {
      const written = write(name, call);
      expect(written, name).not.toContain("a-secret");
      expect(written, name).toContain("QSP_TOKEN");
    }
  });

  it("shortens long values for reading", () => {
    const call = plan(PqcService.method.signData, { data: new Uint8Array(50_000).fill(1) });
    for (const name of languageNames) {
      expect(write(name, call, true).length, name).toBeLessThan(1_500);
      expect(write(name, call).length, name).toBeGreaterThan(50_000);
    }
  });

  it("goes to the page's server, encrypted if the page is", () => {
    const call = plan(KmsService.method.createKey, { alias: "release" });
    const written = languages.grpcurl.write(describeCall(call, "https://qsp.example"));
    expect(written).toContain("qsp.example:443 kms.KmsService/CreateKey");
    expect(written).not.toContain("-plaintext");
  });

  it("puts names into the path and numbers into the query", () => {
    const get = plan(KmsService.method.getKey, { keyId: "name/release" });
    const list = plan(KmsService.method.getAuditLog, { pageSize: 2, newestFirst: true });
    expect(write("curl", get)).toMatch(/\/key\/name%2Frelease/);
    expect(write("curl", list)).toMatch(/pageSize=2&newestFirst=true/);
  });

  it("passes a body that exceeds shell argument limits through standard input", () => {
    const call = plan(PqcService.method.signData, { data: new Uint8Array(50_000) });
    for (const name of ["curl", "grpcurl"] as const)
      expect(write(name, call)).toMatch(/-d @-?(?: \\\n.*)? <<'END'\n\{[\s\S]*\}\nEND$/);
  });

  it("has a REST form for each call in the stories", () => {
    const methods = Object.values(services).flatMap(({ typeName, methods }) =>
      /^(?:pqc|kms|iot|vpn|dapp|wallet|defi|blockchain|nft)\./.test(typeName) ? methods : [],
    );
    expect(methods.length).toBeGreaterThan(50);
    for (const method of methods)
      if (method.methodKind === "unary" || method.methodKind === "server_streaming")
        describeCall({ method, request: create(method.input), token: undefined }, origin);
  });
});

/** Characters that a terminal, an editor or a reader would not see correctly. */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u;

describe("a text as a literal", () => {
  const python = findPython("json");
  it.skipIf(python === undefined)(`is the same text in Python${python ? "" : " (needs Python)"}`, () => {
    const program =
      "import ast, json, sys; print(json.dumps([ast.literal_eval(x) for x in json.load(sys.stdin)]))";
    const literals = hostileTexts.map(quotePythonOrGo);
    for (const literal of literals) expect(literal).not.toMatch(hidden);
    const read = execFileSync(python ?? "", ["-c", program], { input: JSON.stringify(literals) });
    expect(JSON.parse(read.toString())).toEqual(hostileTexts);
  });

  it("is the same JSON in a shell, and nothing in it runs", () => {
    const cwd = makeTemporaryDirectory();
    for (const text of hostileTexts) {
      const json = writeJson({ [text]: text });
      expect(json).not.toMatch(hidden);
      const printed = execFileSync("sh", ["-c", `printf %s ${quoteShell(json)}`], { cwd, encoding: "utf8" });
      expect(JSON.parse(printed)).toEqual({ [text]: text });
    }
    expect(readdirSync(cwd)).toEqual([]);
  });

  it("contains no lone surrogates, which are not text", () => {
    expect(quotePythonOrGo("a\ud800")).toBe('"a\ufffd"');
  });
});

/** A fresh public key from OpenSSL, raw and as PEM. */
function makePublicKey(name: string) {
  const { publicKey } = generateKeyPairSync(name.toLowerCase() as "ml-dsa-44");
  return {
    raw: Uint8Array.from(publicKey.export({ format: "raw-public" })),
    pem: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}

describe("a public key as PEM", () => {
  const names = ["ML-DSA-44", "ML-DSA-87", "ML-KEM-768", "SLH-DSA-SHA2-128s"];
  it.each(names)("matches OpenSSL's output: %s", (name) => {
    const { raw, pem } = makePublicKey(name);
    expect(writePublicKeyPem(raw, name)).toBe(pem);
  });

  it("is offered only for public keys with a known algorithm and the right length", () => {
    const publicKey = new Uint8Array(1952);
    expect(listFormats(publicKey, "ML-DSA-65")).toContain("PEM");
    expect(listFormats(new Uint8Array(), "ML-DSA-65")).toEqual(["hex", "base64"]);
    for (const algorithm of [undefined, "ML-DSA-87", "toString"])
      expect(listFormats(publicKey, algorithm)).toEqual(["hex", "base64"]);
  });

  it("falls back to base64 for other values if the reader prefers PEM", () => {
    expect(chooseFormat("PEM", ["hex", "base64"])).toBe("base64");
    expect(chooseFormat("PEM", ["hex", "base64", "PEM"])).toBe("PEM");
  });
});

describe("displayed bytes", () => {
  const value = Uint8Array.from({ length: 50 }, (_, index) => index);

  it("are the first ones and the rest, in groups of hexadecimal", () => {
    const { whole, start, rest, restSize } = writeBytes(value, "hex");
    expect(whole).toBe(Buffer.from(value).toString("hex"));
    expect([start.slice(0, 14), restSize]).toEqual(["0001 0203 0405", "18 more bytes"]);
    expect(start.replaceAll(" ", "")).toHaveLength(64);
    expect((start + rest).replaceAll(" ", "")).toBe(whole);
  });

  it("are base64 as in REST calls", () => {
    const { whole, start, rest, restSize } = writeBytes(value, "base64");
    expect(whole).toBe(Buffer.from(value).toString("base64"));
    expect([start + rest, restSize]).toEqual([whole, "4 more characters"]);
  });

  it("are the first lines of PEM and the rest", () => {
    const { start, rest, whole } = writeBytes(new Uint8Array(1952), "PEM", "ML-DSA-65");
    expect(start).toMatch(/^-----BEGIN PUBLIC KEY-----\n\S{64}$/);
    expect(`${start}\n${rest}`).toBe(whole);
  });

  it("have no rest if they are few", () => {
    for (const format of ["hex", "base64"] as const)
      expect(writeBytes(Uint8Array.of(1, 2), format)).toMatchObject({ rest: "" });
  });
});
