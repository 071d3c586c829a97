package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// suggest returns the remedy for an unknown name: the name that the user most probably
// meant, or all known names.
func suggest(unknown string, known []string) string {
	if meant := closest(unknown, known); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	return "known here: " + strings.Join(known, ", ")
}

// suggestField returns the remedy for an unknown field of a document of a type. If a field of that name
// is known under another parent, the indentation is probably wrong, and the remedy names that
// parent. If not, suggestField returns the remedy of suggest.
func suggestField(document reflect.Type, unknown string, known []string) string {
	homes := fieldHomes(document)[unknown]
	if closest(unknown, known) != "" || len(homes) == 0 || slices.Contains(homes, "") {
		return suggest(unknown, known)
	}
	return fmt.Sprintf("%s belongs under %s: check the indentation", unknown, strings.Join(homes, " or "))
}

// closest returns the known name that the user most probably meant, or "".
func closest(unknown string, known []string) string {
	if meant := otherNames()[strings.ToLower(unknown)]; slices.Contains(known, meant) {
		return meant
	}
	best, distance := "", max(2, len(unknown)/3)+1
	for _, name := range known {
		if strings.EqualFold(name, unknown) {
			return name
		}
		// The number of edits must be smaller than the length of either name, since any two
		// names of two letters are at most two edits apart.
		d := EditDistance(strings.ToLower(unknown), strings.ToLower(name))
		if d < distance && d < min(len(unknown), len(name)) {
			best, distance = name, d
		}
	}
	return best
}

// otherNames maps other names of fields, in lower case, to today's names. The other names are
// names that users may expect, or names in earlier tools and formats.
func otherNames() map[string]string {
	return map[string]string{
		"address":        "hostname",
		"auxiliary":      "setup",
		"cred":           "credentials",
		"deploys":        "provisioners",
		"host":           "hostname",
		"identityfile":   "privateKey",
		"ip":             "address",
		"jumphost":       "proxyJump",
		"key":            "privateKey",
		"packages":       "chocoPackages",
		"rdp":            "enableRDP",
		"secretfrom":     "passwordFrom",
		"source":         "sourceURL",
		"ssh":            "credentials",
		"target":         "destination",
		"url":            "sourceURL",
		"user":           "username",
		"var":            "env",
		"virtualization": "credentials",
	}
}

// EditDistance counts the insertions, deletions, replacements and swaps of
// neighbours (optimal string alignment) that turn a into b. If a or b is longer than 64 bytes, it
// returns the length of the longer text instead: names of fields are short.
func EditDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
