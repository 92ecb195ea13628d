/** The frames that two threads send each other about calls that one forwards and the other answers. */
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { HeaderPairs } from "./header-pairs.ts";
import type { PackedContext } from "./packed-context.ts";
import type { PackedError } from "./packed-error.ts";

/** A message in the binary form of protobuf, in its own buffer. */
export type MessageBytes = Uint8Array<ArrayBuffer>;

/** The frames of a forwarding thread. The ID is a number of the call that its port does not use again. */
export type CallFrame = { readonly id: number } & (
  | ({ readonly kind: "call" } & CallStart)
  | { readonly kind: "message"; readonly message: MessageBytes }
  /** The requests end. */
  | { readonly kind: "end" }
  /** The requests fail. */
  | { readonly kind: "failure"; readonly error: PackedError }
  /** The caller has taken this number of messages. */
  | { readonly kind: "room"; readonly count: number }
  /** The call ends early. */
  | { readonly kind: "abort"; readonly reason: PackedError }
);

/** The beginning of a call. */
export interface CallStart {
  readonly service: string;
  readonly method: string;
  /** The request, unless the requests are a stream. */
  readonly message: MessageBytes | undefined;
  readonly context: PackedContext;
}

/** The frames of the thread that answers. An end or a failure is the last frame of its call. */
export type AnswerFrame = { readonly id: number } & (
  | { readonly kind: "message"; readonly message: MessageBytes; readonly header: HeaderPairs }
  | ({ readonly kind: "end"; readonly message: MessageBytes | undefined } & AnswerHeaders)
  | ({ readonly kind: "failure"; readonly error: PackedError } & AnswerHeaders)
  /** The handler has taken this number of messages. */
  | { readonly kind: "room"; readonly count: number }
  /** The handler takes no more messages. */
  | { readonly kind: "stop" }
);

interface AnswerHeaders {
  readonly header: HeaderPairs;
  readonly trailer: HeaderPairs;
}

/** Encodes a message as a handler returns it. */
export function encode<Desc extends DescMessage>(desc: Desc, message: MessageInitShape<Desc>): MessageBytes {
  return toBinary(desc, create(desc, message));
}

/** Bytes from which on a buffer is given away instead of copied. Below, a copy is cheap. */
const minTransferBytes = 65_536;

/** The buffer of a frame's message to give away, if it is large and holds nothing else. */
export function listTransfers(frame: CallFrame | AnswerFrame): ArrayBuffer[] {
  const message = "message" in frame ? frame.message : undefined;
  if (message === undefined || message.byteLength < minTransferBytes) return [];
  return message.byteLength === message.buffer.byteLength ? [message.buffer] : [];
}
