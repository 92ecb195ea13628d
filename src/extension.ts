/**
 * What an extension adds to the program: a third-party interface, or a specialized tool. Each has a folder in
 * extensions/, whose extension.ts declares one of these. The entry point passes the list on.
 */
import type { StoreVerb } from "./cli/operator/store-verb.ts";
import type { Verb } from "./cli/verb.ts";
import type { AddedSettings } from "./config/setting.ts";
import type { StartTracing } from "./open-observability.ts";
import type { LoadPackages } from "./services/registry.ts";

/** An extension. Its modules are loaded on demand, so that other verbs start as quickly as without it. */
export interface Extension {
  /** The name of its folder. */
  readonly name: string;
  /** The title of its page. */
  readonly title: string;
  /** The Markdown text in docs/extensions.md: who needs it and what it does for them. */
  readonly summary: string;
  readonly verbs?: readonly ExtensionVerbs[];
  readonly changedVerbs?: readonly ChangedVerbs[];
  readonly changedStoreVerbs?: readonly ChangedVerbs<StoreVerb>[];
  /** Its service packages. */
  readonly packages?: LoadPackages;
  readonly settings?: () => Promise<AddedSettings>;
  /** Traces server calls. At most one extension can. */
  readonly startTracing?: StartTracing;
}

/** Loads the settings of all extensions, in order. */
export async function collectSettings(
  extensions: readonly Pick<Extension, "settings">[],
): Promise<readonly AddedSettings[]> {
  return Promise.all(extensions.flatMap(({ settings }) => settings?.() ?? []));
}

/** Verbs that begin with one word. */
export interface ExtensionVerbs {
  readonly word: string;
  /** The verb after which the help lists these; two words for verbs that load separately. */
  readonly after: string;
  /** One line about the whole group in the help, if there are several verbs. */
  readonly groupMeaning?: string;
  readonly load: () => Promise<readonly Verb[]>;
}

/** Changes to core verbs that begin with one word, such as additional options. */
export interface ChangedVerbs<V = Verb> {
  readonly word: string;
  readonly load: () => Promise<(verbs: readonly V[]) => readonly V[]>;
}
