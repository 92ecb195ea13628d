# Matches texts against patterns: reads {"patterns": [...], "texts": [...]}, prints a row of booleans per pattern.
require "json"

work = JSON.parse(STDIN.read)
rows = work["patterns"].map { |pattern| work["texts"].map { |text| Regexp.new(pattern).match?(text) } }
puts JSON.generate(rows)
