/** The outcomes of the spans of a server. */
export interface SpanCounts {
  /** The collector has them. */
  readonly exported: number;
  /** The collector did not take them. */
  readonly failed: number;
  /** The queue was full. */
  readonly dropped: number;
  /** Calls whose callers record them, and that were not traced because too many callers do. */
  readonly limited: number;
}
