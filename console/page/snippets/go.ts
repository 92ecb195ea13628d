import { type SnippetInput, tokenNote } from "./input.ts";
import { quotePythonOrGo as quote } from "./literals.ts";

/** Writes the call in Go with the standard library. */
export function writeGo({ http, hasToken }: SnippetInput): string {
  const { verb, url, headers, body, file } = http;
  const sent = [
    ...(hasToken ? ['"authorization", "Bearer "+os.Getenv("QSP_TOKEN")'] : []),
    ...(body === undefined ? [] : ['"content-type", "application/json"']),
    ...Object.entries(headers).map(([name, value]) => `${quote(name)}, ${quote(value)}`),
  ];
  const packages = ["io", "log", "net/http", "os", ...(body === undefined ? [] : ["strings"])];
  return `${hasToken ? `// ${tokenNote}\n` : ""}package main

import (
${packages.map((name) => `\t"${name}"`).join("\n")}
)

func main() {
${file === undefined ? "" : `\tbody, err := os.Open(${quote(file.name)})\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n`}\
${body === undefined ? "" : `\tbody := strings.NewReader(${quoteRaw(body)})\n`}\
	request, err := http.NewRequest("${verb}", ${quote(url)}, ${body === undefined && file === undefined ? "nil" : "body"})
	if err != nil {
		log.Fatal(err)
	}
${sent.map((header) => `\trequest.Header.Set(${header})\n`).join("")}\
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		log.Fatal(response.Status)
	}
}`;
}

/** A raw string shows JSON unchanged, but it cannot contain a backtick. */
function quoteRaw(text: string): string {
  return text.includes("`") ? quote(text) : `\`${text}\``;
}
