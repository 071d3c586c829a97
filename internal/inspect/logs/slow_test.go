package logs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/format/logline/slowlog"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// The lines that --since, --until and --level select are those that a slow reading of the whole
// file selects.
func FuzzSelectionsEqualASlowReading(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		const path = `C:\logs\a.log`
		n := startNode(t)
		now := time.Now().UTC().Truncate(time.Second)
		r := rand.New(rand.NewPCG(seed, 1))
		lines := 1 + r.IntN(8000)
		file := slowlog.Random(r, lines, now)
		n.Put(path, []byte(file))
		moment := func() time.Time { return now.Add(-time.Duration(r.IntN(lines+1)) * time.Second) }
		since, until := moment(), moment()
		for _, o := range []slowlog.Options{
			{}, {Since: since}, {Until: until}, {Level: logline.Error},
			{Since: since, Until: since.Add(time.Duration(r.IntN(600)) * time.Second), Level: logline.Warning},
		} {
			o.Now = now
			records, err := show(t, n, logs.Options{Sources: []string{"file:" + path}, Tail: -1, Since: o.Since, Until: o.Until,
				Level: o.Level})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range records {
				if r.Text != "" {
					got = append(got, r.Text)
				}
			}
			if want := slowlog.Read(file, o); !slices.Equal(got, want) {
				t.Errorf("%d lines, since %v, until %v, level %v: %s", lines, o.Since, o.Until, o.Level, difference(got, want))
			}
		}
	})
}

// difference describes the first line that two lists do not have in common.
func difference(got, want []string) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	rest := func(all []string) string {
		if i == len(all) {
			return "nothing"
		}
		return fmt.Sprintf("%.90q", all[i])
	}
	return fmt.Sprintf("%d lines instead of %d; line %d is %s instead of %s", len(got), len(want), i, rest(got), rest(want))
}
