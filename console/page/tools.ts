/**
 * The table of tools: pages for people who run the server's services, not stories about them. A tool is a folder in
 * tools/, and a line in this table. Files ending in .ts hold its logic and need no browser; console/test/tools tests
 * them. Files ending in .tsx show it. Stories and tools share the parts and the Content-Security-Policy.
 */
import type { PageEntry } from "./page-entry.ts";

/** A page of the console that is not a story. */
export type ToolEntry = Omit<PageEntry, "standards" | "icon" | "accent"> &
  Partial<Pick<PageEntry, "icon" | "accent">>;

export const tools: readonly ToolEntry[] = [
  {
    path: "keys/manage",
    title: "Key manager",
    summary: "Find, create, rotate, disable and destroy keys, and grant them to other users.",
    icon: "keys",
    accent: "violet",
    service: "kms.KmsService",
    load: () => import("./tools/key-manager/page.tsx"),
  },
  {
    path: "keys/audit",
    title: "Audit log",
    summary: "Search the log of all uses of keys, or follow it as it grows.",
    icon: "audit",
    accent: "violet",
    service: "kms.KmsService",
    load: () => import("./tools/audit-log/page.tsx"),
  },
  {
    path: "inventory",
    title: "Inventory",
    summary: "What you have created in this tab, and what the server lists for you.",
    icon: "inventory",
    accent: "green",
    load: () => import("./tools/inventory/page.tsx"),
  },
];
