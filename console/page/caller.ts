/** Makes a step's calls, which the step then shows. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";

export interface CallOptions {
  /** Overrides the session's token; null sends none. */
  readonly token?: string | null;
}

/** Calls without a token, for RPCs that anyone may call. */
export const withoutToken = { token: null } as const;

export interface Caller {
  /** @throws Failure */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>>;
}
