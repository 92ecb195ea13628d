/** Chooses the media type of an answer (RFC 9110, section 12.5.1). */
import { refuse } from "../errors.ts";
import { parseWeights, type Weighted } from "../http/weights.ts";

/**
 * Chooses among media types.
 *
 * @param accept the Accept header; null or empty accepts anything
 * @param offered what the server can produce, in its order of preference
 * @throws NOT_ACCEPTABLE
 */
export function chooseMediaType(accept: string | null, offered: readonly string[]): string {
  const first = offered[0] as string;
  if (accept === null || accept.trim() === "" || accept === "*/*") return first;
  const ranges = parseWeights(accept);
  const weighted = offered.map((type) => ({ type, weight: findWeight(type, ranges) }));
  const best = weighted.reduce((one, other) => (other.weight > one.weight ? other : one));
  if (best.weight > 0) return best.type;
  throw refuse(
    "NOT_ACCEPTABLE",
    `accept "${accept}" matches no media type of this call; use ${offered.join(" or ")}`,
    { offered: offered.join(", ") },
  );
}

/** The weight of the most specific range that covers a type. */
function findWeight(mediaType: string, ranges: readonly Weighted[]): number {
  const [type] = mediaType.split("/");
  // From the most to the least specific.
  const covering = [mediaType, `${type}/*`, "*/*"];
  const found = covering.flatMap((range) => ranges.filter(({ value }) => value === range));
  return found[0]?.weight ?? 0;
}
