// Package order sorts texts as people read them: numbers and quantities by their value, all other texts in natural
// order (win-2 before win-10), and unknown values last.
//
//   - choice.go: the column or JSONPath that a user chooses
//   - order.go: the order of a column
//   - quantity.go: sizes, durations, rates and shares as numbers
package order

import (
	"cmp"
	"slices"
	"strings"

	"github.com/maruel/natural"
)

// By returns the indices of the texts of a column in their order. Equal texts keep their order. The texts are
// quantities if more than half of the known ones are; the others are then behind them. Unknown values are last, also
// in a descending order.
func By(texts []string, descending bool) []int {
	keys := keysOf(texts)
	order := make([]int, len(texts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return keys[i].compare(keys[j], descending) })
	return order
}

// key is a text with what its place depends on.
type key struct {
	class class
	value float64 // of a quantity
	text  string  // of any other text, in lower case
}

// class is the part of the order that a text belongs to.
type class int

const (
	quantity class = iota
	other
	unknown
)

func (k key) compare(o key, descending bool) int {
	if k.class != o.class {
		return cmp.Compare(k.class, o.class)
	}
	result := cmp.Or(cmp.Compare(k.value, o.value), natural.Compare(k.text, o.text))
	if descending {
		return -result
	}
	return result
}

func keysOf(texts []string) []key {
	keys := make([]key, len(texts))
	forms, quantities, known := make([]form, len(texts)), 0, 0
	milli := countsInMilli(texts)
	for i, text := range texts {
		keys[i] = key{class: other, text: strings.ToLower(text)}
		if isUnknown(text) {
			keys[i] = key{class: unknown}
			continue
		}
		known++
		if forms[i] = parse(text, milli); forms[i].unit != none {
			quantities++
		}
	}
	if quantities*2 <= known {
		return keys
	}
	for i, f := range forms {
		if f.unit != none {
			keys[i] = key{class: quantity, value: f.value}
		}
	}
	return keys
}

// isUnknown reports whether a text stands for a value that is not known: swdt's dash, and kubectl's words.
func isUnknown(text string) bool {
	return slices.Contains([]string{"", "-", "<none>", "<unknown>", "<nil>", "unknown", "null"},
		strings.ToLower(strings.TrimSpace(text)))
}

// countsInMilli reports whether 250m is a quarter, as in a Kubernetes quantity, and not a time of 250 minutes. It is if
// the column also has plain numbers, and no other unit of time.
func countsInMilli(texts []string) bool {
	plain := false
	for _, text := range texts {
		switch f := parse(text, false); {
		case f.unit == duration && !endsInMinutes(text):
			return false
		case f.unit == number && f.value != 0:
			plain = true
		}
	}
	return plain
}
