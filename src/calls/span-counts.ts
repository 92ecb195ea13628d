/** The outcomes of a server's trace spans. */
export interface SpanCounts {
  /** Accepted by the collector. */
  readonly exported: number;
  /** Rejected by the collector. */
  readonly failed: number;
  /** Dropped because the queue was full. */
  readonly dropped: number;
  /** Calls not traced although their callers record a trace, because too many callers do. */
  readonly limited: number;
}
