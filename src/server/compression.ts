/** Compression of gRPC, gRPC-Web and Connect messages. */

import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { bodyTooLarge, refuse } from "../errors.ts";

const compressions: readonly Compression[] = [compressionGzip, compressionBrotli];

/**
 * Finds a compression by its name in a header; undefined for no compression.
 *
 * @param acceptHeader the response header that lists the supported compressions
 * @throws ENCODING_UNSUPPORTED (UNIMPLEMENTED, as grpc/grpc, doc/compression.md, requires)
 */
export function findCompression(
  encoding: string | null | undefined,
  acceptHeader: string,
): Compression | undefined {
  if (encoding === undefined || encoding === null || encoding === "" || encoding === "identity")
    return undefined;
  const found = compressions.find(({ name }) => name === encoding);
  if (found !== undefined) return found;
  const known = compressions.map(({ name }) => name).join(",");
  const error = refuse(
    "ENCODING_UNSUPPORTED",
    `the encoding "${encoding}" is not supported; use one of ${known}`,
    {
      encoding,
    },
  );
  error.metadata.set(acceptHeader, known);
  throw error;
}

/** @throws BODY_TOO_LARGE, ENCODING_INVALID */
export async function decompress(
  compression: Compression,
  bytes: Uint8Array,
  maxBytes: number,
): Promise<Uint8Array> {
  try {
    return await compression.decompress(bytes, maxBytes);
  } catch (error) {
    const isTooLarge = error instanceof ConnectError && error.code === Code.ResourceExhausted;
    throw isTooLarge
      ? bodyTooLarge(maxBytes)
      : refuse(
          "ENCODING_INVALID",
          `the message is not the ${compression.name} data that its header announces`,
        );
  }
}
