package cli

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
)

// closest returns the candidate that the user most probably meant, or "". If several are
// equally close, it returns the longest, since omitting a letter is the most common slip.
func closest(typed string, candidates []string) string {
	best, distance := "", 2 // one slip; a longer word may have several, such as two swapped letters
	if len(typed) > 3 {
		distance = max(3, len(typed)/3+1)
	}
	for _, candidate := range candidates {
		d := config.EditDistance(strings.ToLower(typed), candidate)
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
