/** Makes calls for a step, which then shows them. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Failure } from "./failure.ts";

export interface CallOptions {
  /** Replaces the session's token; null sends no token. */
  readonly token?: string | null;
  readonly signal?: AbortSignal;
}

/** Calls without a token, for RPCs that anyone may call. */
export const withoutToken = { token: null } as const;

/** Makes the calls of a step. */
export interface Caller {
  /** @throws Failure */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>>;
  /** Makes a call that the server should refuse, and returns the refusal. @throws Failure if the server answers */
  callRefused<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<Failure>;
}
