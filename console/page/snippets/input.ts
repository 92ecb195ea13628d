/** The input of the writers of all languages. */
import type { JsonValue } from "@bufbuild/protobuf";
import type { Json } from "../../../src/openapi/document.ts";

/** A request as HTTP sends it. */
export interface HttpRequest {
  readonly verb: string;
  readonly url: string;
  /** Besides those of the token and the body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** The call that a snippet is written from. */
export interface SnippetInput {
  readonly http: HttpRequest;
  /** The message of gRPC, or undefined if the body is not JSON. */
  readonly message: Json | undefined;
  /** "kms.KmsService/Sign" */
  readonly rpc: string;
  /** Whether the call sends the token of the variable QSP_TOKEN. A snippet never has the token itself. */
  readonly hasToken: boolean;
  readonly isStream: boolean;
  /** Whether the answer is JSON. */
  readonly isJson: boolean;
}

/** The environment variable from which snippets read a token, as `qsp` does. */
export const tokenVariable = "QSP_TOKEN";

/** Stands as a comment above a snippet with a token. */
export const tokenNote = `First: export ${tokenVariable}='the token that POST /api/auth/token answers with'`;

export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
