import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { services } from "../../../src/client/services.ts";
import { describeCall, type SnippetCall } from "../../page/snippets/call.ts";
import { type LanguageName, languageNames, languages } from "../../page/snippets/languages.ts";

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
