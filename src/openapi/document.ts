/**
 * The parts of an OpenAPI 3.1 document that this folder writes (spec.openapis.org/oas/v3.1.1, section 4.8).
 */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

/** Where an example field takes its value from. */
export interface ExampleLink {
  /** Name of the other example. */
  readonly answerOf: string;
  /** Path in its answer: "result.keyId". */
  readonly path: string;
}

/** By example name, then by path of the field in the request: "keyId". */
export type ExampleLinks = Readonly<Record<string, Readonly<Record<string, ExampleLink>>>>;

/** The JSON Schema keywords (draft 2020-12) that this folder uses. */
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

/** A reference to a part of `components`. */
export interface Reference {
  readonly $ref: string;
}

/** A value in the path, query or headers. */
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

/** A body in one media type. */
export interface MediaType {
  readonly schema: Schema;
  readonly example?: Json | undefined;
  readonly examples?:
    | Readonly<Record<string, { readonly summary: string; readonly value: Json }>>
    | undefined;
}

export interface RequestBody {
  readonly required: boolean;
  readonly content: Readonly<Record<string, MediaType>>;
}

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
  /** The same call for gRPC clients; not part of OpenAPI. */
  readonly "x-grpc": {
    /** "kms.KmsService/Sign" */
    readonly method: string;
    /** Message of the first example; absent if the body's example is the same. */
    readonly request?: Json;
    /** Sources of example values, if examples of this or other calls take values from answers. */
    readonly examples?: ExampleLinks;
  };
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
}

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
  /** By path, then by HTTP method, or by the name of an extension (describe-api.ts). */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly securitySchemes: Readonly<Record<string, Json>>;
  };
}
