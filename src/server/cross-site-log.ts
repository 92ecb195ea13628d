/**
 * Logs the origins that the server refuses: their users see only a browser error, so the operator must find
 * out here.
 */
import type { Logger } from "pino";
import { excerpt } from "../errors/shorten.ts";

/** Milliseconds until an origin may be logged again. */
const pauseMs = 600_000;

/** Maximum origins logged in this time. Any program can send any origin, so their number needs a bound. */
const maxOrigins = 20;

/** A refused request from a page of another origin. */
export interface CrossSiteRefusal {
  /** The `origin` header (untrusted); undefined if absent. */
  readonly origin: string | undefined;
  readonly requestId: string;
}

export type CrossSiteLog = ReturnType<typeof createCrossSiteLog>;

/** An origin that was logged. */
interface Known {
  readonly atMs: number;
  /** Refusals since then. */
  more: number;
}

/**
 * Creates the log of one server.
 *
 * @param nowMs milliseconds on a monotonic clock
 */
export function createCrossSiteLog(
  logger: Pick<Logger, "warn">,
  nowMs: () => number = () => performance.now(),
) {
  const known = new Map<string, Known>();
  /** Refusals of origins beyond the limit, since the last line. */
  let others = 0;
  return {
    /** Writes a line, unless this origin or twenty others were logged in the last ten minutes. */
    refused({ origin, requestId }: CrossSiteRefusal): void {
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

/** Makes room for another origin if possible. */
function hasPlace(known: Map<string, Known>, nowMs: number): boolean {
  if (known.size < maxOrigins) return true;
  for (const [name, { atMs }] of known) if (nowMs - atMs >= pauseMs) known.delete(name);
  return known.size < maxOrigins;
}

function nameOrigin(origin: string | undefined): string {
  return origin === undefined ? "none" : excerpt(origin).toWellFormed();
}

/** Returns whether --cors-origins can name an origin (HTML, section 7.1.1: "null" stands for opaque ones). */
function isWebOrigin(name: string): boolean {
  return /^https?:[^*]+$/.test(name) && URL.canParse(name) && new URL(name).origin === name;
}
