import { parseJson, type SnippetInput, tokenNote } from "./input.ts";
import { writeJson } from "./literals.ts";

/** Writes the call in TypeScript and JavaScript with fetch. */
export function writeTypeScript({ http, hasToken, isStream, isJson }: SnippetInput): string {
  const { verb, url, headers, body } = http;
  const value = body === undefined ? undefined : parseJson(body);
  const sent = [
    ...(hasToken ? [`authorization: "Bearer " + process.env.QSP_TOKEN`] : []),
    ...(body === undefined ? [] : ['"content-type": "application/json"']),
    ...Object.entries(headers).map(([name, text]) => `${writeJson(name)}: ${writeJson(text)}`),
  ];
  const parts = [
    ...(verb === "GET" ? [] : [`method: "${verb}"`]),
    ...(sent.length === 0 ? [] : [`headers: { ${sent.join(", ")} }`]),
    ...(value === undefined ? [] : [`body: JSON.stringify(${indent(writeJson(value, 2))})`]),
  ];
  const options = parts.length === 0 ? "" : `, {\n${parts.map((part) => `  ${part},\n`).join("")}}`;
  return [
    ...(hasToken ? [`// ${tokenNote}`] : []),
    `const response = await fetch(${JSON.stringify(url)}${options});`,
    "if (!response.ok) throw new Error(await response.text());",
    ...writeUse(isStream, isJson),
  ].join("\n");
}

function writeUse(isStream: boolean, isJson: boolean): string[] {
  if (!isStream) return [`console.log(await response.${isJson ? "json" : "bytes"}());`];
  return [
    "const texts = response.body?.pipeThrough(new TextDecoderStream()) ?? [];",
    "for await (const text of texts) console.log(text);",
  ];
}

function indent(text: string): string {
  return text.replaceAll("\n", "\n  ");
}
