/** The declaration of a reason. */
import type { Code } from "@connectrpc/connect";

/** One reason to refuse a call. docs/errors.md, or the page of an extension, has its cause and its remedy. */
export interface Reason {
  /** The status code of the error. */
  readonly code: Code;
  /** The HTTP status, where google/rpc/code.proto is too coarse. */
  readonly httpStatus?: number;
  /** Set if the operator should act: the server logs the refusal as an error. All other reasons concern the caller. */
  readonly isServerFault?: true;
  /** The name of the error in OAuth 2, where that of its code is too coarse. */
  readonly oauthError?: string;
}

/** A reason with its name, as extensions declare theirs. */
export interface NamedReason extends Reason {
  readonly name: string;
}
