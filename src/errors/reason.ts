import type { Code } from "@connectrpc/connect";

/** A reason to refuse a call. docs/errors.md, or an extension's page, explains its cause and remedy. */
export interface Reason {
  /** The status code of the error. */
  readonly code: Code;
  /** The HTTP status, if the default in google/rpc/code.proto is too coarse. */
  readonly httpStatus?: number;
  /**
   * Set if the operator should act: the server logs the refusal as an error. All other reasons concern the
   * caller.
   */
  readonly isServerFault?: true;
  /** The OAuth 2 error name, if the code's default is too coarse. */
  readonly oauthError?: string;
}

/** A reason with its name, for declarations in extensions. */
export interface NamedReason extends Reason {
  readonly name: string;
}
