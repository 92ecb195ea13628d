/** The table of views: pages that show the server itself. Anybody may open them. */
import type { PageEntry } from "./page-entry.ts";

export const views: readonly PageEntry[] = [
  {
    path: "algorithms",
    title: "Algorithm explorer",
    summary: "Compare sizes, security categories and measured times of all algorithms, old and new.",
    icon: "algorithms",
    accent: "indigo",
    service: "pqc.PqcService",
    isOpen: true,
    load: () => import("./views/algorithms/page.tsx"),
  },
  {
    path: "activity",
    title: "Activity",
    summary: "Watch this server work: calls per second, latency and errors, live.",
    icon: "activity",
    accent: "green",
    isOpen: true,
    load: () => import("./views/activity/page.tsx"),
  },
];
