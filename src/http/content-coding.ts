/** Negotiates how a response is compressed (RFC 9110, section 12.5.3), and compresses it. */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";
import { parseWeights } from "./weights.ts";

const brotliAsync = promisify(brotliCompress);
const gzipAsync = promisify(gzip);
const zstdAsync = promisify(zstdCompress);

/** HTTP names of content codings (RFC 9110, section 8.4.1; RFC 8878). */
export type ContentCoding = "zstd" | "br" | "gzip";

/**
 * The codings that the server computes for each response, cheapest first. Node compresses on its thread pool.
 * The levels keep 4 MiB of base64, the largest response, below 150 ms of CPU time.
 */
const encoders: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  zstd: (bytes) => zstdAsync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
  br: (bytes) => brotliAsync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: (bytes) => gzipAsync(bytes, { level: 4 }),
};

/** The codings that the server computes for each response, in its order of preference. */
export const contentCodings: readonly ContentCoding[] = ["zstd", "br", "gzip"];

/** Compresses bytes off the event loop. */
export function encodeContent(coding: ContentCoding, bytes: Uint8Array): Promise<Uint8Array> {
  return encoders[coding](bytes);
}

/** How to send a response. */
export interface CodingChoice<C extends string> {
  /** The best coding that the client accepts; undefined for none. */
  readonly coding: C | undefined;
  /** Whether the client also accepts the response uncompressed. */
  readonly isIdentityAccepted: boolean;
}

/**
 * Chooses the coding with the highest weight, and among equals the first one offered. Any accepted coding
 * wins over none, unless the client gives "identity" a higher weight.
 *
 * @param acceptEncoding the header; without it the response is not compressed
 */
export function chooseCoding<C extends string>(
  acceptEncoding: string | null | undefined,
  offered: readonly C[],
): CodingChoice<C> {
  const weights = new Map(
    // RFC 9110, section 8.4.1.3: x-gzip is an alias of gzip.
    parseWeights(acceptEncoding ?? "").map(({ value, weight }) => [
      value.replace(/^x-gzip$/, "gzip"),
      weight,
    ]),
  );
  const weightOf = (name: string): number | undefined => weights.get(name) ?? weights.get("*");
  const isIdentityAccepted = weightOf("identity") !== 0;
  let best: C | undefined;
  let highest = weights.get("identity") ?? 0;
  for (const coding of offered) {
    const weight = weightOf(coding) ?? 0;
    if (weight > 0 && (best === undefined ? weight >= highest : weight > highest)) {
      best = coding;
      highest = weight;
    }
  }
  return { coding: best, isIdentityAccepted };
}
