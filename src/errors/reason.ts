/** What there is to say of a reason. */
import type { Code } from "@connectrpc/connect";

/** One reason with which a call can be refused. */
export interface Reason {
  /** The status code that it travels under. */
  readonly code: Code;
  /** Its HTTP status, where google/rpc/code.proto is too coarse. */
  readonly httpStatus?: number;
  /** Tells that the operator should look at it: the server logs it as an error. All others are the caller's. */
  readonly isServerFault?: true;
  /** Says what brings it about, in Markdown. */
  readonly cause: string;
  /** Says what to do, in Markdown. */
  readonly remedy: string;
}
