/** The input of the writers of all languages. */
import type { Json } from "../document.ts";
import type { HttpRequest } from "../request.ts";

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

/** Stands as a comment above a snippet with a token. */
export const tokenNote = "First: export QSP_TOKEN='the token that POST /api/auth/token answers with'";
