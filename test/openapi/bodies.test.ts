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

describe("the body of a request", () => {
  it("is the whole message, by its name", () => {
    const { operation } = describeRule({ post: "/v1", body: "*" });
    const schema = operation.requestBody?.content["application/json"]?.schema;
    expect(schema).toEqual({ $ref: "#/components/schemas/testing.EverythingInput" });
  });

  it("is one field", () => {
    expect(requestOf("CreateBook")?.content["application/json"]?.schema).toEqual(bookInputRef);
  });

  it("lacks what stands in the path", () => {
    const schema = requestOf("MoveBook")?.content["application/json"]?.schema;
    expect(Object.keys(schema?.properties ?? {})).toEqual(["otherShelf"]);
  });

  it("lacks what stands in the path also inside a message", () => {
    const { operation } = describeRule({ post: "/v1/{nested.id}", body: "*" });
    const properties = operation.requestBody?.content["application/json"]?.schema.properties ?? {};
    expect(Object.keys(properties)).toContain("name");
    expect(Object.keys(properties.nested?.properties ?? {})).toContain("longName");
    expect(Object.keys(properties.nested?.properties ?? {})).not.toContain("id");
  });

  it("is anything where the field is a google.api.HttpBody", () => {
    expect(requestOf("PutCover")?.content).toEqual({ "*/*": { schema: {} } });
  });

  it("is one JSON text a line, or an array, for a client stream", () => {
    const content = requestOf("ImportBooks")?.content;
    expect(content?.["application/x-ndjson"]?.schema).toMatchObject(bookInputRef);
    expect(content?.["application/json"]?.schema).toEqual({ type: "array", items: bookInputRef });
  });

  it("is absent where the rule has none", () => {
    expect(requestOf("DeleteBook")).toBeUndefined();
  });

  it("refuses fields that the message does not have", () => {
    expect(library.components.schemas["testing.BookInput"]?.additionalProperties).toBe(false);
    expect(library.components.schemas["testing.Book"]?.additionalProperties).toBeUndefined();
  });
});

describe("the body of an answer", () => {
  it("is the whole message", () => {
    expect(answerOf("GetBook")).toEqual({ "application/json": { schema: bookRef } });
  });

  it("is one field", () => {
    const schema = answerOf("ListTitles")["application/json"]?.schema;
    expect(schema).toEqual({ type: "array", items: { type: "string" } });
  });

  it("is a field whose message is of another package", () => {
    const { operation, document } = describeRule({
      get: "/v1",
      output: OperationSchema,
      responseBody: "error",
    });
    const schema = JSON.stringify(operation.responses["200"]);
    expect(schema).toContain('"#/components/schemas/google.rpc.Status"');
    expect(document.components.schemas).toHaveProperty(["google.rpc.Status", "properties", "message"]);
  });

  it("is null where that field is not set", () => {
    const { operation } = describeRule({ get: "/v1", responseBody: "nickname" });
    expect(operation.responses["200"]).toHaveProperty(
      ["content", "application/json", "schema", "anyOf"],
      [{ type: "string" }, { type: "null" }],
    );
  });

  it("is anything for a google.api.HttpBody, whole or as a field", () => {
    expect(answerOf("GetCover")).toEqual({ "*/*": { schema: {} } });
    expect(answerOf("StoreBlob")).toEqual({ "*/*": { schema: {} } });
  });

  it("is a server stream in each of its forms, lines first", () => {
    const content = answerOf("WatchBooks");
    const each: Schema = { anyOf: [bookRef, { $ref: "#/components/schemas/ApiError" }] };
    expect(Object.keys(content)[0]).toBe("application/x-ndjson");
    expect(content["application/x-ndjson"]?.schema).toMatchObject(each);
    expect(content["application/json"]?.schema).toEqual({ type: "array", items: each });
    expect(content["text/event-stream"]?.schema).toMatchObject({ type: "string" });
  });
});
