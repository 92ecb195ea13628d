/** Every reason of the core to refuse a call. docs/errors.md shows this table. */
import type { Reason } from "./reason.ts";
import { keyReasons, logReasons, recordReasons } from "./record-reasons.ts";
import { bodyReasons, messageReasons, routingReasons } from "./request-reasons.ts";
import { callerReasons, endReasons, limitReasons, storeReasons } from "./server-reasons.ts";

/** The reasons by topic, in the order of docs/errors.md. */
export const reasonSections: readonly {
  readonly heading: string;
  readonly reasons: Readonly<Record<string, Reason>>;
}[] = [
  { heading: "Finding the call", reasons: routingReasons },
  { heading: "Headers and body", reasons: bodyReasons },
  { heading: "The message", reasons: messageReasons },
  { heading: "Keys", reasons: keyReasons },
  { heading: "Records of other services", reasons: recordReasons },
  { heading: "Verifiable logs", reasons: logReasons },
  { heading: "The store", reasons: storeReasons },
  { heading: "The caller", reasons: callerReasons },
  { heading: "Limits", reasons: limitReasons },
  { heading: "How the call ended", reasons: endReasons },
];

/** Every reason of the core that a caller can receive. A reason keeps its meaning after it ships. */
export const reasons = {
  ...routingReasons,
  ...bodyReasons,
  ...messageReasons,
  ...keyReasons,
  ...recordReasons,
  ...logReasons,
  ...storeReasons,
  ...callerReasons,
  ...limitReasons,
  ...endReasons,
} as const;

/** Names a reason. */
export type ReasonName = keyof typeof reasons;
