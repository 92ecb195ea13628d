/** The part of CHANGELOG.md that describes one version. */
export interface ReleaseNotes {
  /** Day of the release, such as 2027-01-31; undefined while the heading says "not released". */
  readonly date: string | undefined;
  /** The section without its heading, in Markdown. */
  readonly text: string;
}

/** Reads the notes of a version from the changelog; undefined if it has no such section. */
export function readNotes(changelog: string, version: string): ReleaseNotes | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/[\s,]/, 1)[0] === version);
  if (section === undefined) return undefined;
  const [heading = "", ...lines] = section.split("\n");
  return { date: /\d{4}-\d{2}-\d{2}/.exec(heading)?.[0], text: `${lines.join("\n").trim()}\n` };
}
