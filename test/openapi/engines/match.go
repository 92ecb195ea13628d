// Matches texts against patterns: reads {"patterns": [...], "texts": [...]}, prints a row of booleans per pattern.
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

func main() {
	var work struct{ Patterns, Texts []string }
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		panic(err)
	}
	rows := [][]bool{}
	for _, pattern := range work.Patterns {
		expression := regexp.MustCompile(pattern)
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
