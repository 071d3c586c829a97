package trust

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is the result of swdt config trust, untrust and list.
type Report struct {
	Files []Record `json:"files"`
	Ended bool     `json:"ended"` // these files are not trusted any more
}

// WriteText writes each file with what it may use.
func (r Report) WriteText(w io.Writer) error {
	if len(r.Files) == 0 {
		_, err := fmt.Fprintln(w, "no node file is trusted")
		return err
	}
	for _, record := range r.Files {
		if r.Ended {
			if _, err := fmt.Fprintf(w, "%s is not trusted any more\n", record.File); err != nil {
				return err
			}
			continue
		}
		_, err := fmt.Fprintf(w, "%s, since %s\n%s", record.File, record.Trusted.Format(time.DateTime), Text(record.Claims))
		if err != nil {
			return err
		}
	}
	return nil
}

// Text returns a line for each claim. Documents with the same claim share a line.
func Text(claims []Claim) string {
	if len(claims) == 0 {
		return "  it contacts nothing and runs nothing\n"
	}
	type content struct{ field, value string }
	var order []content
	documents := map[content][]string{}
	for _, claim := range claims {
		c := content{claim.Field, claim.Value}
		if len(documents[c]) == 0 {
			order = append(order, c)
		}
		documents[c] = append(documents[c], claim.Document)
	}
	slices.SortStableFunc(order, func(a, b content) int { return cmp.Compare(a.field, b.field) })
	var text strings.Builder
	for _, c := range order {
		fmt.Fprintf(&text, "  %s: %s (%s)\n", c.field, c.value, strings.Join(documents[c], ", "))
	}
	return text.String()
}
