/** Input for the snippet writers of all languages. */
import type { JsonValue } from "@bufbuild/protobuf";
import type { Json } from "../../../src/openapi/document.ts";

/** A request as sent over HTTP. */
export interface HttpRequest {
  readonly verb: string;
  readonly url: string;
  /** In addition to the token's and the body's headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON */
  readonly body: string | undefined;
  /** The body of an upload, whose type is in the headers. */
  readonly file?: File | undefined;
}

/** The call from which a snippet is generated. */
export interface SnippetInput {
  readonly http: HttpRequest;
  /** The gRPC message, or undefined if the body is not JSON. */
  readonly message: Json | undefined;
  /** "kms.KmsService/Sign" */
  readonly rpc: string;
  /** Whether the call sends the token in QSP_TOKEN. A snippet never contains the token itself. */
  readonly hasToken: boolean;
  readonly isStream: boolean;
  /** Whether the answer is JSON. */
  readonly isJson: boolean;
}

/** The environment variable from which snippets read a token, as `qsp` does. */
export const tokenVariable = "QSP_TOKEN";

/** The comment above a snippet with a token. */
export const tokenNote = `First: export ${tokenVariable}='the token that POST /api/auth/token returns'`;

export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
