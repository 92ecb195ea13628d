/** All pages of the console that this server can show. */
import type { PageEntry } from "./page-entry.ts";
import { settings } from "./settings.ts";
import { stories } from "./stories.ts";
import { tools } from "./tools.ts";
import { views } from "./views.ts";

const isShown = ({ service }: PageEntry): boolean => service === undefined || settings.services.has(service);

export const shownStories: readonly PageEntry[] = stories.filter(isShown);
export const shownViews: readonly PageEntry[] = views.filter(isShown);
export const shownTools: readonly PageEntry[] = tools
  .map((tool) => ({ icon: "tool", accent: "blue", ...tool }) as const)
  .filter(isShown);
