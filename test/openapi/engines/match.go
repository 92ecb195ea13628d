// Matches texts against patterns: reads {"patterns": [...], "texts": [...]}, prints a row of booleans per pattern.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

var unicode = regexp.MustCompile(`\\u([0-9A-F]{4})`)

func main() {
	var work struct{ Patterns, Texts []string }
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		panic(err)
	}
	rows := [][]bool{}
	for _, pattern := range work.Patterns {
		// RE2 lacks \u001F. Libraries for OpenAPI, such as kin-openapi, convert it like this.
		expression := regexp.MustCompile(unicode.ReplaceAllString(pattern, `\x{$1}`))
		row := []bool{}
		for _, text := range work.Texts {
			row = append(row, expression.MatchString(text))
		}
		rows = append(rows, row)
	}
	if err := json.NewEncoder(os.Stdout).Encode(rows); err != nil {
		panic(err)
	}
}
