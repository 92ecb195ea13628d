/** The RPCs of a server, callable over gRPC, gRPC-Web and Connect. */
import type { DescMethod, Registry } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Interceptor, MethodImplSpec } from "@connectrpc/connect";
import { composeUnary, type UnaryHandler, type UnarySpec } from "../calls/unary-call.ts";
import type { MessageLimits } from "../message-limits/structure-limits.ts";

export interface Rpc extends MessageLimits {
  readonly method: DescMethod;
  /** Whether Connect may send it as a GET. */
  readonly isSafe: boolean;
  /** Runs the RPC with its interceptors; undefined for a stream. */
  readonly handle: UnaryHandler | undefined;
}

export type UnaryRpc = Rpc & { readonly handle: UnaryHandler; readonly method: UnarySpec["method"] };

export function isUnary(rpc: Rpc): rpc is UnaryRpc {
  return rpc.handle !== undefined;
}

/** What all RPCs of a server share. */
export interface RpcOptions {
  readonly specs: Iterable<MethodImplSpec>;
  readonly interceptors: readonly Interceptor[];
  readonly limitsOf: (method: DescMethod) => Omit<MessageLimits, "registry">;
  readonly registry: Registry;
}

/** Collects RPCs by path, "/package.Service/Method". */
export function createRpcs(options: RpcOptions): ReadonlyMap<string, Rpc> {
  const { specs, interceptors, limitsOf, registry } = options;
  return new Map(
    [...specs].map((spec) => {
      const { method } = spec;
      const rpc: Rpc = {
        ...limitsOf(method),
        registry,
        method,
        isSafe: method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
        handle: spec.kind === "unary" ? composeUnary(spec, interceptors) : undefined,
      };
      return [`/${method.parent.typeName}/${method.name}`, rpc];
    }),
  );
}
