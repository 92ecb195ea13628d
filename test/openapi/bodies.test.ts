import { createServiceImplSpec } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { OperationSchema } from "#gen/google/longrunning/operations_pb.ts";
import type { Schema } from "../../src/openapi/document.ts";
import { Library } from "../gen/testing/library_pb.ts";
import { findOperation } from "./call-examples.ts";
import { describeRule, describeServices } from "./describe-rules.ts";

const library = describeServices([createServiceImplSpec(Library, {})]);
const bookRef = { $ref: "#/components/schemas/testing.Book" };
const bookInputRef = { $ref: "#/components/schemas/testing.BookInput" };

function requestOf(rpc: string) {
  return findOperation(library, `testing.Library.${rpc}`).operation.requestBody;
}

function answerOf(rpc: string) {
  const answer = findOperation(library, `testing.Library.${rpc}`).operation.responses["200"];
  return answer !== undefined && "content" in answer ? (answer.content ?? {}) : {};
}

describe("a request body", () => {
  it("refers to the whole message by name", () => {
    const { operation } = describeRule({ post: "/v1", body: "*" });
    const schema = operation.requestBody?.content["application/json"]?.schema;
    expect(schema).toEqual({ $ref: "#/components/schemas/testing.EverythingInput" });
  });

  it("can be a single field", () => {
    expect(requestOf("CreateBook")?.content["application/json"]?.schema).toEqual(bookInputRef);
  });

  it("omits fields in the path", () => {
    const schema = requestOf("MoveBook")?.content["application/json"]?.schema;
    expect(Object.keys(schema?.properties ?? {})).toEqual(["otherShelf"]);
  });

  it("omits nested fields in the path", () => {
    const { operation } = describeRule({ post: "/v1/{nested.id}", body: "*" });
    const properties = operation.requestBody?.content["application/json"]?.schema.properties ?? {};
    expect(Object.keys(properties)).toContain("name");
    expect(Object.keys(properties.nested?.properties ?? {})).toContain("longName");
    expect(Object.keys(properties.nested?.properties ?? {})).not.toContain("id");
  });

  it("accepts anything for a google.api.HttpBody field", () => {
    expect(requestOf("PutCover")?.content).toEqual({ "*/*": { schema: {} } });
  });

  it("is one JSON text per line, or an array, for a client stream", () => {
    const content = requestOf("ImportBooks")?.content;
    expect(content?.["application/x-ndjson"]?.schema).toMatchObject(bookInputRef);
    expect(content?.["application/json"]?.schema).toEqual({ type: "array", items: bookInputRef });
  });

  it("is absent if the HTTP rule has none", () => {
    expect(requestOf("DeleteBook")).toBeUndefined();
  });

  it("rejects unknown fields", () => {
    expect(library.components.schemas["testing.BookInput"]?.additionalProperties).toBe(false);
    expect(library.components.schemas["testing.Book"]?.additionalProperties).toBeUndefined();
  });
});

describe("a response body", () => {
  it("is the whole message", () => {
    expect(answerOf("GetBook")).toEqual({ "application/json": { schema: bookRef } });
  });

  it("can be a single field", () => {
    const schema = answerOf("ListTitles")["application/json"]?.schema;
    expect(schema).toEqual({ type: "array", items: { type: "string" } });
  });

  it("can be a field whose message is in another package", () => {
    const { operation, document } = describeRule({
      get: "/v1",
      output: OperationSchema,
      responseBody: "error",
    });
    const schema = JSON.stringify(operation.responses["200"]);
    expect(schema).toContain('"#/components/schemas/google.rpc.Status"');
    expect(document.components.schemas).toHaveProperty(["google.rpc.Status", "properties", "message"]);
  });

  it("is null if that field is not set", () => {
    const { operation } = describeRule({ get: "/v1", responseBody: "nickname" });
    expect(operation.responses["200"]).toHaveProperty(
      ["content", "application/json", "schema", "anyOf"],
      [{ type: "string" }, { type: "null" }],
    );
  });

  it("allows anything for a google.api.HttpBody, whole or as a field", () => {
    expect(answerOf("GetCover")).toEqual({ "*/*": { schema: {} } });
    expect(answerOf("StoreBlob")).toEqual({ "*/*": { schema: {} } });
  });

  it("describes a server stream as lines or events, not as an array, which may never end", () => {
    const content = answerOf("WatchBooks");
    const each: Schema = { anyOf: [bookRef, { $ref: "#/components/schemas/ApiError" }] };
    expect(Object.keys(content)[0]).toBe("application/x-ndjson");
    expect(content).not.toHaveProperty("application/json");
    expect(content["application/x-ndjson"]?.schema).toMatchObject(each);
    expect(content["text/event-stream"]?.schema).toMatchObject({ type: "string" });
  });
});
