import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { services } from "../../../src/client/services.ts";
import { writeCurl, writeGrpcurl } from "../../../src/console/page/commands.ts";
import type { SnippetCall } from "../../../src/console/page/snippets/call.ts";
import { languageNames, languages } from "../../../src/console/page/snippets/languages.ts";
import { nameClient } from "../../../src/console/page/snippets/typescript.ts";

const origin = "http://127.0.0.1:8080";

function plan<I extends DescMessage>(
  method: DescMethodUnary<I>,
  init: MessageInitShape<I>,
  token?: string,
): SnippetCall {
  return { method, request: create(method.input, init), token };
}

const createKey = plan(KmsService.method.createKey, {
  alias: "release",
  labels: { team: "payments" },
  rotationPeriodSeconds: 86_400,
});

describe("a call as a program", () => {
  it("is written in Python", () => {
    expect(languages.Python.write(createKey, { origin })).toBe(`import grpc

from kms import kms_service_pb2
from kms.kms_service_pb2_grpc import KmsServiceStub

with grpc.insecure_channel("127.0.0.1:8080") as channel:
    answer = KmsServiceStub(channel).CreateKey(
        kms_service_pb2.CreateKeyRequest(
            alias="release",
            rotation_period_seconds=86400,
            labels={
                "team": "payments",
            },
        ),
    )
    print(answer)
`);
  });

  it("is written in Go", () => {
    expect(
      languages.Go.write(createKey, { origin }),
    ).toContain(`	answer, err := kms.NewKmsServiceClient(conn).CreateKey(ctx, &kms.CreateKeyRequest{
		Alias:                 "release",
		RotationPeriodSeconds: proto.Uint32(86400),
		Labels: map[string]string{
			"team": "payments",
		},
	})
`);
  });

  it("is written in TypeScript", () => {
    expect(
      languages.TypeScript.write(createKey, { origin }),
    ).toBe(`import { createClients } from "quantum-safe-playground/client";

const { kms } = createClients("http://127.0.0.1:8080");
const answer = await kms.createKey({
  alias: "release",
  rotationPeriodSeconds: 86400,
  labels: {
    ["team"]: "payments",
  },
});
console.log(answer);
`);
  });

  it("names fields of Python's keywords, times and streams", () => {
    const from = timestampFromDate(new Date(1_000));
    const method = KmsService.method.watchAuditLog;
    const call = { method, request: create(method.input, { from, afterSequence: 0 }), token: undefined };
    const python = languages.Python.write(call, { origin });
    expect(python).toContain('**{"from": timestamp_pb2.Timestamp(');
    expect(python).toContain("from google.protobuf import timestamp_pb2");
    expect(languages.Go.write(call, { origin })).toContain("proto.Float64(0)");
    expect(languages.TypeScript.write(call, { origin })).toContain("seconds: 1n,");
  });

  it("reads tokens and passwords from the environment, and contains neither", () => {
    const login = { username: "ada", password: "a-secret-password" };
    const call = plan(PqcService.method.issueToken, login, "a-secret-token");
    for (const name of languageNames) {
      const written = languages[name].write(call, { origin });
      expect(written, name).not.toContain("a-secret");
      expect(written, name).toContain("QSP_TOKEN");
    }
    expect(languages.Python.write(call, { origin })).toContain('os.environ["QSP_PASSWORD"]');
  });

  it("leaves out the middle of long values, where it is for reading", () => {
    const call = plan(PqcService.method.signData, { data: new Uint8Array(50_000).fill(1) });
    for (const name of languageNames) {
      expect(languages[name].write(call, { origin, isShort: true })?.length, name).toBeLessThan(1_000);
      expect(languages[name].write(call, { origin })?.length, name).toBeGreaterThan(50_000);
    }
  });

  it("goes to the server of the page, encrypted if the page is", () => {
    const secure = { origin: "https://qsp.example" };
    expect(languages.Python.write(createKey, secure)).toContain('grpc.secure_channel("qsp.example:443"');
    expect(languages.Go.write(createKey, secure)).toContain("credentials.NewTLS(nil)");
    expect(languages.grpcurl.write(createKey, secure)).not.toContain("-plaintext");
  });

  it("allows a token in the clear only where the page has sent it so", () => {
    const call = { ...createKey, token: "a" };
    const write = (origin: string) => languages.TypeScript.write(call, { origin });
    expect(write("http://qsp.example")).toContain("allowCleartext: true");
    for (const safe of [origin, "https://qsp.example"]) expect(write(safe)).not.toContain("allowCleartext");
  });

  it("passes a body that no shell takes as an argument through the standard input", () => {
    const call = plan(PqcService.method.signData, { data: new Uint8Array(50_000) });
    for (const written of [writeCurl(call, { origin }), writeGrpcurl(call, { origin })])
      expect(written).toMatch(/-d @-?(?: \\\n.*)? <<'END'\n\{.*\}\nEND$/);
  });

  it("uses the names of the package's clients", () => {
    // Those that the stories call.
    for (const name of [
      "pqc",
      "token",
      "kms",
      "iot",
      "vpn",
      "dapp",
      "wallet",
      "defi",
      "blockchain",
      "nft",
    ] as const)
      expect(nameClient(services[name].name)).toBe(name);
  });

  it("has a form for each field of all calls of the stories", () => {
    const methods = Object.values(services).flatMap(({ typeName, methods }) =>
      /^(?:pqc|kms|iot|vpn|dapp|wallet|defi|blockchain|nft)\./.test(typeName) ? methods : [],
    );
    const fields = methods
      .filter(({ methodKind }) => methodKind === "unary" || methodKind === "server_streaming")
      .flatMap(({ input }) => input.fields);
    expect(fields.length).toBeGreaterThan(100);
    // The writers know no enums and no choices between fields.
    expect(fields.filter(({ enum: type, oneof }) => type !== undefined || oneof !== undefined)).toEqual([]);
  });
});
