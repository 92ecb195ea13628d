/** Chooses the media type of an answer (RFC 9110, section 12.5.1). */
import { refuse } from "../errors.ts";

/** One element of an Accept header: `application/*;q=0.5`. */
interface MediaRange {
  readonly type: string;
  readonly subtype: string;
  /** 0 (not acceptable) to 1. */
  readonly quality: number;
}

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
  const ranges = parseAccept(accept);
  let best: { type: string; quality: number } | undefined;
  for (const type of offered) {
    const quality = findQuality(type, ranges);
    if (quality > (best?.quality ?? 0)) best = { type, quality };
  }
  if (best !== undefined) return best.type;
  throw refuse(
    "NOT_ACCEPTABLE",
    `accept "${accept}" matches no media type of this call; use ${offered.join(" or ")}`,
    {
      offered: offered.join(", "),
    },
  );
}

function parseAccept(accept: string): MediaRange[] {
  return accept.split(",").flatMap((element) => {
    if (element === "") return [];
    const [range = "", ...parameters] = element.split(";").map((part) => part.trim().toLowerCase());
    const [type, subtype] = range.split("/");
    if (type === undefined || subtype === undefined) return [];
    const weight = parameters.find((parameter) => parameter.startsWith("q="));
    const quality = weight === undefined ? 1 : Number(weight.slice(2));
    return [{ type, subtype, quality: Number.isFinite(quality) ? Math.min(Math.max(quality, 0), 1) : 0 }];
  });
}

/** The quality of the most specific range that covers a type. */
function findQuality(mediaType: string, ranges: readonly MediaRange[]): number {
  const [type, subtype] = mediaType.split("/");
  let specificity = -1;
  let quality = 0;
  for (const range of ranges) {
    const covers =
      range.type === "*" || (range.type === type && (range.subtype === "*" || range.subtype === subtype));
    const rank = range.type === "*" ? 0 : range.subtype === "*" ? 1 : 2;
    if (covers && rank > specificity) {
      specificity = rank;
      quality = range.quality;
    }
  }
  return quality;
}
