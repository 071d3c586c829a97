package media

import (
	"fmt"
	"strconv"
	"strings"
)

// Words returns the words for editions in node files.
func Words() []string {
	return []string{"standard-core", "standard", "datacenter-core", "datacenter"}
}

// EditionError reports that an ISO does not have exactly one edition of the wanted kind.
type EditionError struct {
	Wanted   string
	Matching []Edition // the editions that match: several, or none
	Editions []Edition // all
}

func (e *EditionError) Error() string {
	problem := "the ISO has no edition %q"
	if len(e.Matching) > 0 {
		problem = "several editions of the ISO match %q"
	}
	if len(e.Editions) == 0 {
		return fmt.Sprintf(problem+", and no other one; use another ISO", e.Wanted)
	}
	var all []string
	for _, edition := range e.Editions {
		all = append(all, edition.String())
	}
	return fmt.Sprintf(problem+"; choose one of its editions, by index, name or word: %s",
		e.Wanted, strings.Join(all, ", "))
}

// String returns the index, name and word of an edition, such as 1 "Windows Server 2022
// SERVERSTANDARDCORE" (standard-core).
func (e Edition) String() string {
	text := fmt.Sprintf("%d %q", e.Index, e.Name)
	if e.Word != "" {
		text += " (" + e.Word + ")"
	}
	return text
}

// Choose returns the edition that a text selects. The text is one of Words, an index such as 2, a
// name, or a display name. Names may differ in case, but an exact name wins. If no edition or
// several editions match, the error is an *EditionError, which lists all editions.
func (m Media) Choose(wanted string) (Edition, error) {
	index, err := strconv.Atoi(wanted)
	numeric := err == nil
	for _, matches := range []func(Edition) bool{
		func(e Edition) bool { return numeric && e.Index == index },
		func(e Edition) bool { return e.Word != "" && e.Word == wanted },
		func(e Edition) bool { return e.Name == wanted },
		func(e Edition) bool { return strings.EqualFold(e.Name, wanted) },
		func(e Edition) bool { return strings.EqualFold(e.DisplayName, wanted) },
	} {
		var matching []Edition
		for _, e := range m.Editions {
			if matches(e) && wanted != "" {
				matching = append(matching, e)
			}
		}
		if len(matching) == 1 {
			return matching[0], nil
		}
		if len(matching) > 1 {
			return Edition{}, &EditionError{Wanted: wanted, Matching: matching, Editions: m.Editions}
		}
	}
	return Edition{}, &EditionError{Wanted: wanted, Editions: m.Editions}
}
