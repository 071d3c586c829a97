package cli

import "strings"

// closest returns the candidate that the user most probably meant, or "". If several are
// equally close, it returns the longest, since omitting a letter is the most common slip.
func closest(typed string, candidates []string) string {
	best, distance := "", 2 // one slip; a longer word may have several, such as two swapped letters
	if len(typed) > 3 {
		distance = max(3, len(typed)/3+1)
	}
	for _, candidate := range candidates {
		d := edits(strings.ToLower(typed), candidate)
		if d < distance || d == distance && best != "" && len(candidate) > len(best) {
			best, distance = candidate, d
		}
	}
	if best == "" && len(typed) >= 3 {
		for _, candidate := range candidates {
			if strings.HasPrefix(candidate, typed) {
				return candidate
			}
		}
	}
	return best
}

// edits returns the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
