/** Tells the operator which pages of other origins the server refuses: their users see only an error of the browser. */
import type { Logger } from "pino";
import { excerpt } from "../errors/shorten.ts";

/** Milliseconds after which an origin may have another line. */
const pauseMs = 600_000;

/** The most origins that have a line in this time. Any program can send any origin, so their number needs a bound. */
const maxOrigins = 20;

/** A request of a page that may not call. */
export interface CrossSiteRefusal {
  /** The header `origin`, as anyone may send it; undefined if there is none. */
  readonly origin: string | undefined;
  readonly requestId: string;
}

/** Writes the lines. */
export interface CrossSiteLog {
  /** Writes a line, unless the origin had one in the last ten minutes, or twenty other origins had one. */
  refused(refusal: CrossSiteRefusal): void;
}

/** An origin that had a line. */
interface Known {
  readonly atMs: number;
  /** Refusals since its line. */
  more: number;
}

/**
 * Creates the log of one server.
 *
 * @param nowMs milliseconds of a monotonic clock
 */
export function createCrossSiteLog(
  logger: Pick<Logger, "warn">,
  nowMs: () => number = () => performance.now(),
): CrossSiteLog {
  const known = new Map<string, Known>();
  /** Refusals of origins without a place, since the last line. */
  let others = 0;
  return {
    refused({ origin, requestId }) {
      const name = nameOrigin(origin);
      const last = known.get(name);
      if (last !== undefined && nowMs() - last.atMs < pauseMs) {
        last.more += 1;
        return;
      }
      if (last === undefined && !hasPlace(known, nowMs())) {
        others += 1;
        return;
      }
      known.set(name, { atMs: nowMs(), more: 0 });
      const counts = { ...(last?.more && { more: last.more }), ...(others > 0 && { others }) };
      others = 0;
      logger.warn(
        { reason: "CROSS_SITE_REFUSED", origin: name, requestId, ...counts },
        isWebOrigin(name)
          ? "pages of this origin may not call; if you trust them, add it to --cors-origins"
          : "a page without an origin that could be allowed may not call",
      );
    },
  };
}

/** Makes room for one more origin, if there is any. */
function hasPlace(known: Map<string, Known>, nowMs: number): boolean {
  if (known.size < maxOrigins) return true;
  for (const [name, { atMs }] of known) if (nowMs - atMs >= pauseMs) known.delete(name);
  return known.size < maxOrigins;
}

function nameOrigin(origin: string | undefined): string {
  return origin === undefined ? "none" : excerpt(origin).toWellFormed();
}

/** Tells whether --cors-origins can name an origin (HTML, section 7.1.1: "null" stands for opaque ones). */
function isWebOrigin(name: string): boolean {
  return /^https?:[^*]+$/.test(name) && URL.canParse(name) && new URL(name).origin === name;
}
