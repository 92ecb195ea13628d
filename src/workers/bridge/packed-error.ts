/** Converts errors to plain data for another thread, which restores them. A structured clone would lose details. */
import { create, createRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { isServerFault, restoreError } from "../../errors.ts";
import { type HeaderPairs, packHeaders, setHeaders } from "./header-pairs.ts";

/** A ConnectError with its cause, or another error. */
export type PackedError = PackedRefusal | PackedFault;

interface PackedRefusal {
  readonly kind: "refusal";
  readonly code: Code;
  readonly message: string;
  readonly metadata: HeaderPairs;
  readonly details: readonly PackedDetail[];
  readonly stack: string | undefined;
  readonly cause: PackedFault | undefined;
}

/** An error for the log. */
interface PackedFault {
  readonly kind: "fault";
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly cause: PackedFault | undefined;
}

interface PackedDetail {
  /** The full name of the message type. */
  readonly type: string;
  readonly value: Uint8Array<ArrayBuffer>;
}

/** The types that our refusals carry. */
const detailTypes = createRegistry(BadRequestSchema, ErrorInfoSchema, RetryInfoSchema);

/** How many causes of causes travel. A cause can be its own cause. */
const maxCauses = 5;

/** Converts any thrown value. Never throws. */
export function packError(thrown: unknown): PackedError {
  try {
    return thrown instanceof ConnectError ? packRefusal(thrown) : packFault(thrown);
  } catch {
    return packFault(new Error("the error of a handler cannot be read"));
  }
}

/** Restores an error. */
export function unpackError(packed: PackedError): Error {
  if (packed.kind === "fault") return unpackFault(packed);
  const { code, message: rawMessage, metadata, details, stack, cause } = packed;
  const error = restoreError({
    code,
    rawMessage,
    metadata: setHeaders(new Headers(), metadata),
    details: details.map(unpackDetail),
  });
  if (stack !== undefined) error.stack = stack;
  if (cause !== undefined) error.cause = unpackFault(cause);
  return error;
}

function packRefusal(error: ConnectError): PackedRefusal {
  const { code, rawMessage, metadata, details, cause } = error;
  return {
    kind: "refusal",
    code,
    message: rawMessage,
    metadata: packHeaders(metadata),
    details: details.map(packDetail),
    // Only these are logged with their stack, and formatting a stack takes longer than the rest.
    stack: isServerFault(error) ? error.stack : undefined,
    cause: cause === undefined ? undefined : packFault(cause),
  };
}

function packFault(thrown: unknown, causesLeft = maxCauses): PackedFault {
  if (!(thrown instanceof Error))
    return { kind: "fault", name: "Error", message: String(thrown), stack: undefined, cause: undefined };
  const { name, message, stack, cause } = thrown;
  const hasCause = cause !== undefined && causesLeft > 0;
  return {
    kind: "fault",
    name: String(name),
    message: String(message),
    stack: stack === undefined ? undefined : String(stack),
    cause: hasCause ? packFault(cause, causesLeft - 1) : undefined,
  };
}

function unpackFault({ name, message, stack, cause }: PackedFault): Error {
  const error = new Error(message);
  // Not enumerable, so that the log does not show them twice.
  const keep = (key: string, value: unknown): unknown =>
    Object.defineProperty(error, key, { value, writable: true, configurable: true });
  keep("name", name);
  if (stack !== undefined) keep("stack", stack);
  if (cause !== undefined) keep("cause", unpackFault(cause));
  return error;
}

function packDetail(detail: ConnectError["details"][number]): PackedDetail {
  if ("type" in detail) return { type: detail.type, value: Uint8Array.from(detail.value) };
  const { desc, value } = detail;
  return { type: desc.typeName, value: toBinary(desc, create(desc, value)) };
}

/** Connect shows a detail in readable form only if it has its descriptor. */
function unpackDetail({ type, value }: PackedDetail): ConnectError["details"][number] {
  const desc = detailTypes.getMessage(type);
  if (desc === undefined) return { type, value };
  try {
    return { desc, value: fromBinary(desc, value) };
  } catch {
    return { type, value };
  }
}
