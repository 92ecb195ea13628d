/** Creates descriptions from proto comments. */
import type { DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { nestedTypes, protoCamelCase, qualifiedName } from "@bufbuild/protobuf/reflect";

/** Proto comments by full name, as in gen/comments.ts. */
export type Comments = Readonly<Record<string, string>>;

/** Returns the description of an element of a proto; undefined if it has no comment. */
export type Describe = (desc: DescService | DescMethod | DescMessage | DescField) => string | undefined;

/**
 * Converts comments to texts for REST callers: each paragraph on one line, fields by their JSON names. An
 * indented block keeps its lines, indented as Markdown code (CommonMark 0.31, section 4.4).
 */
export function createDescribe(comments: Comments): Describe {
  const names = new Set(Object.keys(comments).map((name) => name.slice(name.lastIndexOf(".") + 1)));
  return (desc) => {
    // Fields may declare JSON names, as in OAuth 2.
    const { file } = desc.kind === "rpc" || desc.kind === "field" ? desc.parent : desc;
    const own = listJsonNames(file);
    const rename = (word: string): string => own.get(word) ?? (names.has(word) ? protoCamelCase(word) : word);
    const comment = comments[qualifiedName(desc)];
    if (comment === undefined) return undefined;
    const paragraphs = comment
      .split(/\n{2,}|(?<=^\S.*)\n(?= {2})|(?<=^ {2}.*)\n(?=\S)/m)
      .map((block) =>
        /^ {2}/.test(block) ? block.replace(/^ {2}/gm, "    ") : block.replace(/\s*\n\s*/g, " "),
      );
    return nameWildcards(paragraphs.join("\n\n")).replace(/\b[a-z0-9]+(_[a-z0-9]+)+\b/g, rename);
  };
}

function listJsonNames(file: DescFile): ReadonlyMap<string, string> {
  const messages = [...nestedTypes(file)].filter((type) => type.kind === "message");
  return new Map(messages.flatMap(({ fields }) => fields.map(({ name, jsonName }) => [name, jsonName])));
}

/**
 * Names the wildcards in resource names: "projects/*" becomes "projects/{project}". Generators put
 * descriptions into comments, which an asterisk before a slash would end.
 */
function nameWildcards(text: string): string {
  return text.replace(/\b(\w+)s\/\*/g, "$1s/{$1}");
}

/** Returns the first sentence of a text, without its full stop. */
export function firstSentence(text: string | undefined): string | undefined {
  return text?.match(/^.+?(?=\.\s|\.?$)/m)?.[0];
}

/** Appends sentences to a text as a separate paragraph; undefined if no text results. */
export function withSentences(text: string | undefined, sentences: readonly string[]): string | undefined {
  const parts = [text, sentences.map(endSentence).join(" ")].filter(
    (part) => part !== undefined && part !== "",
  );
  return parts.length === 0 ? undefined : parts.join("\n\n");
}

function endSentence(sentence: string): string {
  // A field name stays in lower camel case.
  const text = sentence.replace(/^[a-z]+\b/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
