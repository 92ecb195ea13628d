/**
 * What an extension adds to the program: an interface that somebody else specified, or the tool of a trade. Each has a
 * folder in extensions/, whose extension.ts declares one of these. Whoever composes the program passes the list on.
 */
import type { StoreVerb } from "./cli/operator/store-verb.ts";
import type { Verb } from "./cli/verb.ts";
import type { AddedSettings } from "./config/setting.ts";
import type { StartTracing } from "./open-observability.ts";
import type { LoadPackages } from "./services/registry.ts";

/** An extension. What it names is loaded when it is needed, so that other verbs start as quickly as without it. */
export interface Extension {
  /** The name of its folder. */
  readonly name: string;
  /** The name of its page. */
  readonly title: string;
  /** What docs/extensions.md says of it: its readers, and what it does for them, in Markdown. */
  readonly summary: string;
  readonly verbs?: readonly ExtensionVerbs[];
  readonly changedVerbs?: readonly ChangedVerbs[];
  readonly changedStoreVerbs?: readonly ChangedVerbs<StoreVerb>[];
  /** Its packages of services. */
  readonly packages?: LoadPackages;
  readonly settings?: () => Promise<AddedSettings>;
  /** Traces the calls of a server. At most one extension does. */
  readonly startTracing?: StartTracing;
}

/** Loads the settings of extensions, in their order. */
export async function collectSettings(
  extensions: readonly Pick<Extension, "settings">[],
): Promise<readonly AddedSettings[]> {
  return Promise.all(extensions.flatMap(({ settings }) => settings?.() ?? []));
}

/** Verbs that begin with one word. */
export interface ExtensionVerbs {
  readonly word: string;
  /** The word of the verbs that the help lists before these; two words for those that load separately. */
  readonly after: string;
  /** What the help says of all of them in one line, if there are several. */
  readonly groupMeaning?: string;
  readonly load: () => Promise<readonly Verb[]>;
}

/** A change of the core's verbs that begin with one word, such as more options of one of them. */
export interface ChangedVerbs<V = Verb> {
  readonly word: string;
  readonly load: () => Promise<(verbs: readonly V[]) => readonly V[]>;
}
