/** The parts of an OpenAPI 3.1 document that this folder writes (spec.openapis.org/oas/v3.1.1, section 4.8). */

/** A value of JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Where a field of an example takes its value from. */
export interface ExampleLink {
  /** The name of another example. */
  readonly answerOf: string;
  /** The path in its answer: "result.keyId". */
  readonly path: string;
}

/** By the name of an example, and there by the path of the field in its request: "keyId". */
export type ExampleLinks = Readonly<Record<string, Readonly<Record<string, ExampleLink>>>>;

/** The keywords of JSON Schema (draft 2020-12) that are used here. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string | undefined;
  readonly deprecated?: boolean | undefined;
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly format?: string;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: boolean | Schema | undefined;
  readonly propertyNames?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
}

/** Refers to a part of `components`. */
export interface Reference {
  readonly $ref: string;
}

/** A value in path, query or headers. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly description?: string | undefined;
  readonly required?: boolean;
  readonly deprecated?: boolean | undefined;
  readonly schema?: Schema;
  readonly content?: Readonly<Record<string, MediaType>>;
  readonly example?: Json | undefined;
}

/** The body of one media type. */
export interface MediaType {
  readonly schema: Schema;
  readonly example?: Json | undefined;
  readonly examples?:
    | Readonly<Record<string, { readonly summary: string; readonly value: Json }>>
    | undefined;
}

/** The body of a request. */
export interface RequestBody {
  readonly required: boolean;
  readonly content: Readonly<Record<string, MediaType>>;
}

/** An answer. */
export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

/** One call. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string | undefined;
  readonly description?: string | undefined;
  readonly deprecated?: boolean | undefined;
  readonly parameters?: readonly (Parameter | Reference)[] | undefined;
  readonly requestBody?: RequestBody | undefined;
  readonly responses: Readonly<Record<string, Response | Reference>>;
  /** How gRPC clients make the same call; no part of OpenAPI. */
  readonly "x-grpc": {
    /** "kms.KmsService/Sign" */
    readonly method: string;
    /** The message of the first example; absent if it is the example of the body. */
    readonly request?: Json;
    /** Where the values of its examples are from, if they or others take values from answers. */
    readonly examples?: ExampleLinks;
  };
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
}

/** A whole document. */
export interface OpenApiDocument {
  readonly openapi: "3.1.1";
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** By path, and there by HTTP method, or by the name of an extension (describe-api.ts). */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly securitySchemes: Readonly<Record<string, Json>>;
  };
}
