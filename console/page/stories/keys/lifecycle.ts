/** The life of a key, as docs/keys.md describes it. */
import type { Lifecycle } from "../../parts/diagrams/lifecycle.ts";

export const keyLifecycle: Lifecycle = {
  states: [
    { name: "ACTIVE", column: 0, row: 0 },
    { name: "ROTATED", column: 2.2, row: 0 },
    { name: "DISABLED", column: 0, row: 1.3 },
    { name: "DESTROY_SCHEDULED", column: 0, row: 2.6 },
    { name: "DESTROYED", column: 2.2, row: 2.6 },
  ],
  // Lines that would cross boxes are in the sentence below the graph.
  transitions: [
    { from: "ACTIVE", to: "ROTATED", label: "rotate" },
    { from: "ACTIVE", to: "DISABLED", label: "disable" },
    { from: "DISABLED", to: "ACTIVE", label: "enable" },
    { from: "DISABLED", to: "ROTATED", label: "enable again" },
    { from: "DISABLED", to: "DESTROY_SCHEDULED", label: "schedule" },
    { from: "DESTROY_SCHEDULED", to: "DISABLED", label: "restore" },
    { from: "ROTATED", to: "DESTROY_SCHEDULED", label: "schedule" },
    { from: "DESTROY_SCHEDULED", to: "DESTROYED", label: "when due" },
    { from: "ROTATED", to: "DESTROYED", label: "destroy" },
  ],
};
