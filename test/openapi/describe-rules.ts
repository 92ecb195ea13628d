/** Describes services made of single HTTP rules or single protovalidate rules. */
import {
  create,
  createFileRegistry,
  type DescMessage,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import {
  type FieldDescriptorProto_Label,
  type FieldDescriptorProto_Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
} from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldOption,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { ServiceProfiles } from "../../src/calls/service-profile.ts";
import { describeApi } from "../../src/openapi/describe-api.ts";
import type { OpenApiDocument, Operation, Parameter, Schema } from "../../src/openapi/document.ts";
import type { Comments } from "../../src/openapi/texts.ts";
import { compileRoutes } from "../../src/transcoding/routes.ts";
import { describeService, implementUnary, type RuledRpc } from "../transcoding/rules.ts";

export function describeServices(
  services: readonly ServiceImplSpec[],
  comments: Comments = {},
  profiles: ServiceProfiles = {},
): OpenApiDocument {
  return describeApi({
    title: "Test",
    version: "1",
    services: services.map(({ service }) => service),
    routes: compileRoutes(services, profiles),
    comments,
    examples: [],
    answers: {},
    auth: "open",
    profiles,
  });
}

/** Describes RPCs with these rules: testing.Ruled.Rpc1 and so on. */
export function describeRules(rules: readonly RuledRpc[], comments?: Comments): OpenApiDocument {
  return describeServices([implementUnary(describeService(rules), () => () => ({}))], comments);
}

/** Returns the only operation of a rule, and where it is. */
export function describeRule(rule: RuledRpc): {
  readonly at: string;
  readonly operation: Operation;
  readonly document: OpenApiDocument;
} {
  const document = describeRules([rule]);
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ at: `${method} ${path}`, operation, document })),
  );
  const [only] = all;
  if (only === undefined || all.length > 1) throw new Error(`the rule has ${all.length} operations`);
  return only;
}

/** Returns an operation's own parameters in one place. */
export function parametersOf(operation: Operation, place: Parameter["in"]): Parameter[] {
  return (operation.parameters ?? []).filter((one): one is Parameter => "in" in one && one.in === place);
}

/** Field rules as a proto file writes them. */
export type Rules = MessageInitShape<typeof FieldRulesSchema>;

/** Builds a message with a single field, "value", that has these rules. */
export function ruledMessage(
  type: FieldDescriptorProto_Type,
  rules: Rules,
  label?: FieldDescriptorProto_Label,
): DescMessage {
  const options = create(FieldOptionsSchema);
  setExtension(options, fieldOption, create(FieldRulesSchema, rules));
  const field = { name: "value", number: 1, type, options, jsonName: "value", ...(label && { label }) };
  const file = create(FileDescriptorProtoSchema, {
    name: "ruled.proto",
    package: "ruled",
    syntax: "proto3",
    messageType: [{ name: "Ruled", field: [field] }],
  });
  const message = createFileRegistry(file, () => undefined).getMessage("ruled.Ruled");
  if (message === undefined) throw new Error("the message was not built");
  return message;
}

/** Returns the schema of a request with that message. */
export function describeRuled(...parts: Parameters<typeof ruledMessage>): Schema {
  const input = ruledMessage(...parts);
  const { components } = describeRules([{ post: "/v1", body: "*", input }]);
  return components.schemas[input.typeName] ?? {};
}
