/** An entry in a table of pages. */
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icon.tsx";

/** The colour of a page, by its name in accents.css. */
export type Accent =
  | "teal"
  | "cyan"
  | "blue"
  | "indigo"
  | "violet"
  | "magenta"
  | "rose"
  | "orange"
  | "amber"
  | "olive"
  | "green";

/** A page of the console. */
export interface PageEntry {
  /** Its address: "#/sign". */
  readonly path: string;
  readonly title: string;
  /** Describes the page in one sentence. */
  readonly summary: string;
  readonly icon: IconName;
  readonly accent: Accent;
  /** Full name of the service that it calls, if it needs one. */
  readonly service?: string;
  /** The standards that are at work. */
  readonly standards?: string;
  /** Whether the page shows something to readers without a token on a server that wants one. */
  readonly isOpen?: boolean;
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
}
